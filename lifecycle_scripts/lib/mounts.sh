# shellcheck shell=bash
# What is mounted where, as the kernel tells it.
[[ -z ${ULTRACLUSTER_LIB_MOUNTS:-} ]] || return 0
ULTRACLUSTER_LIB_MOUNTS=1

# mounts::at PATH: prints TYPE SOURCE of the topmost mount there; nothing when there is none.
# An automount point that nobody has entered yet is `autofs` and counts as nothing.
mounts::at() {
  local point rest type source found=''
  # 36 35 98:0 / /fsx rw,relatime shared:1 - lustre 10.1.0.9@tcp:/abcdefgh rw
  while read -r _ _ _ _ point rest; do
    [[ $point == "$1" ]] || continue
    read -r type source _ <<<"${rest#* - }"
    found="$type $source"
    [[ $type != autofs ]] || found=''
  done <"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  [[ -z $found ]] || printf '%s\n' "$found"
}

# mounts::of_type TYPE: where file systems of this type are mounted, one path per line
mounts::of_type() {
  local point rest
  while read -r _ _ _ _ point rest; do
    [[ ${rest#* - } != "$1 "* ]] || printf '%s\n' "$point"
  done <"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# mounts::is_automount PATH: does a look at the path mount it?
mounts::is_automount() {
  local point rest
  while read -r _ _ _ _ point rest; do
    [[ $point != "$1" || ${rest#* - } != 'autofs '* ]] || return 0
  done <"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  return 1
}

# mounts::further: where cluster.json wants further Lustre file systems, one path per line
mounts::further() {
  local one
  for one in ${LUSTRE_FURTHER:-}; do printf '%s\n' "${one%%,*}"; done
}

# mounts::unit PATH: the name of its units, without .mount or .automount (systemd-escape --path)
mounts::unit() {
  local name=${1#/}
  name=${name//-/\\x2d}
  [[ $name != .* ]] || name='\x2e'${name#.}
  printf '%s' "${name//\//-}"
}
