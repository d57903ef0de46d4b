# shellcheck shell=bash
# What is mounted where, as the kernel tells it.
[[ -z ${ULTRACLUSTER_LIB_MOUNTS:-} ]] || return 0
ULTRACLUSTER_LIB_MOUNTS=1

# mounts::at PATH: prints TYPE SOURCE of the topmost mount there; nothing when there is none.
# An automount point that nobody has entered yet is `autofs` and counts as nothing.
mounts::at() {
  # 36 35 98:0 / /fsx rw,relatime shared:1 - lustre 10.1.0.9@tcp:/abcdefgh rw
  awk -v path="$1" '
    $5 == path { for (i = 7; $i != "-"; i++); found = ($(i + 1) == "autofs") ? "" : $(i + 1) " " $(i + 2) }
    END { if (found) print found }
  ' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# mounts::of_type TYPE: where file systems of this type are mounted, one path per line
mounts::of_type() {
  awk -v type="$1" '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == type) print $5 }' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# mounts::is_automount PATH: does a look at the path mount it?
mounts::is_automount() {
  awk -v path="$1" '$5 == path { for (i = 7; $i != "-"; i++); if ($(i + 1) == "autofs") found = 1 } END { exit !found }' \
    "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# mounts::unit PATH: the name of its units, without .mount or .automount (systemd-escape --path)
mounts::unit() {
  local name=${1#/}
  name=${name//-/\\x2d}
  [[ $name != .* ]] || name='\x2e'${name#.}
  printf '%s' "${name//\//-}"
}
