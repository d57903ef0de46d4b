# shellcheck shell=bash
# Libraries: files software
# pyxis: `srun --container-image`. A plugin of Slurm that works with exactly the Slurm it was compiled against, so our own
# build carries Slurm's version in its path, and another Slurm means another build.

# Plugstacks name one path on all nodes, a link to this node's build, which another image or Slurm may change. `optional`:
# a `required` line to a file that is missing ends every srun and sbatch; so, a node without pyxis runs all jobs that use no
# container.
readonly PYXIS_LINK=/opt/ultracluster/pyxis/spank_pyxis.so

pyxis::detect() {
  local path
  software::for pyxis compute login controller
  pyxis::find_slurm || step::not_applicable "no Slurm here"
  path=$(pyxis::path)
  [[ -n $path ]] || step::absent "no spank_pyxis.so for Slurm $SLURM_VERSION"
  pyxis::is_linked || step::absent "$PYXIS_LINK does not lead to $path"
  pyxis::is_plugged || step::absent "no plugstack names a spank_pyxis.so that is there"
  step::present "$path"
}

# Sets SLURM, its folder, and SLURM_VERSION. PCS has one folder per version and links none: the cluster's
# is taken, or the newest where it is not known (in an image build).
pyxis::find_slurm() {
  local folder
  SLURM='' SLURM_VERSION=''
  for folder in "$ULTRACLUSTER_ROOT"/opt/slurm "$ULTRACLUSTER_ROOT"/opt/aws/pcs/scheduler/slurm-"${CLUSTER_SLURM_VERSION:-}"*; do
    [[ ! -x $folder/bin/srun ]] || SLURM=${folder#"$ULTRACLUSTER_ROOT"}
  done
  [[ -n $SLURM ]] || return 1
  # slurm 25.11.4; Debian and Ubuntu: slurm-wlm 22.05.8
  SLURM_VERSION=$({ "$ULTRACLUSTER_ROOT$SLURM/bin/srun" --version 2>/dev/null || true; } | sed -n '1s/^.*[[:space:]]\([0-9][A-Za-z0-9.-]*\)[[:space:]]*$/\1/p')
  [[ -n $SLURM_VERSION ]]
}

pyxis::own() {
  printf '/opt/ultracluster/pyxis-%s-slurm-%s' "${RELEASE['pyxis.version']}" "$SLURM_VERSION"
}

# The image's own was built for its Slurm.
pyxis::path() {
  local path
  for path in "$(pyxis::own)"/spank_pyxis.so {"$SLURM",/usr/local}/lib/slurm/spank_pyxis.so; do
    [[ ! -e $ULTRACLUSTER_ROOT$path ]] || { echo "$path" && return; }
  done
}

# The place of the configuration: on PCS a folder of its own on every node; elsewhere the controller's, which the other
# nodes of a configless cluster fetch. An include of a folder does not work there, so the line goes into the file itself.
pyxis::plugstack() {
  case $NODE_FAMILY:$NODE_ROLE in
    pcs:*) echo "/etc/aws/pcs/scheduler/${SLURM##*/}/plugstack.conf.d/ultracluster-pyxis.conf" ;;
    *:controller) echo "$SLURM/etc/plugstack.conf" ;;
  esac
}

# The line, and the file that it names: an image's own line stays while that is so.
pyxis::is_plugged() {
  local plugstack named
  plugstack=$(pyxis::plugstack)
  [[ -n $plugstack && -z ${NODE_BAKE:-} ]] || return 0
  while read -r named; do
    [[ ! -e $ULTRACLUSTER_ROOT$named ]] || return 0
  done < <(pyxis::named)
  return 1
}

# Files that are read, ours first
pyxis::plugstacks() {
  local -r folder=$ULTRACLUSTER_ROOT${1%/*}
  local file
  for file in "$ULTRACLUSTER_ROOT$1" "$folder"/plugstack.conf.d/*.conf "$folder"/pyxis.conf "$folder"/*.conf; do
    [[ ! -e $file ]] || case $file in
      */plugstack.conf.d/*.conf | */plugstack.conf | */pyxis.conf) echo "$file" ;;
    esac
  done | awk '!seen[$0]++'
}

readonly PYXIS_LINE='^[[:space:]]*\(required\|optional\)[[:space:]]\{1,\}\([^#[:space:]]*spank_pyxis\.so\).*'

# Paths of spank_pyxis.so that plugstacks name
pyxis::named() {
  local file
  while read -r file; do sed -n "s/$PYXIS_LINE/\2/p" "$file"; done < <(pyxis::plugstacks "$(pyxis::plugstack)")
}

pyxis::is_linked() {
  [[ $(readlink "$ULTRACLUSTER_ROOT$PYXIS_LINK") == "$(pyxis::target)" ]]
}

# Relative, so that it holds under any root
pyxis::target() {
  printf '../../..%s' "$(pyxis::path)"
}

pyxis::link() {
  local -r link=$ULTRACLUSTER_ROOT$PYXIS_LINK
  mkdir -p "${link%/*}"
  ln --symbolic --force --no-dereference "$(pyxis::target)" "${link%/*}/.new"
  mv -f -T -- "${link%/*}/.new" "$link"
}

# Lines to a file that is not there any more go: they would end every srun.
pyxis::plug() {
  local plugstack file named
  plugstack=$(pyxis::plugstack)
  while read -r file; do
    while read -r named; do
      [[ ! -e $ULTRACLUSTER_ROOT$named ]] || continue
      log::warn "${file#"$ULTRACLUSTER_ROOT"} names $named, which is not there"
      grep -vF -- "$named" "$file" | files::write "${file#"$ULTRACLUSTER_ROOT"}" || [[ ${PIPESTATUS[0]} == 1 ]]
    done < <(sed -n "s/$PYXIS_LINE/\2/p" "$file")
  done < <(pyxis::plugstacks "$plugstack")
  {
    cat "$ULTRACLUSTER_ROOT$plugstack" 2>/dev/null || true
    echo "optional $PYXIS_LINK"
  } | files::write "$plugstack"
  # Nodes that run already have the plugstack of their start.
  if [[ $NODE_ROLE == controller ]] && systemctl is-active --quiet slurmctld.service; then
    timeout 60 "$ULTRACLUSTER_ROOT$SLURM/bin/scontrol" reconfigure || log::warn "slurmctld did not reread its configuration: run scontrol reconfigure"
  fi
}

# The build alone: the link and the line in the plugstack take no file.
pyxis::needs() {
  pyxis::find_slurm
  [[ -n $(pyxis::path) ]] || echo pyxis
}

pyxis::install() {
  local own
  pyxis::find_slurm
  if [[ -z $(pyxis::path) ]]; then
    own=$(pyxis::own)
    software::needs make gcc
    [[ -e $ULTRACLUSTER_ROOT$SLURM/include/slurm/spank.h ]] || step::fail "pyxis is compiled with $SLURM/include, and there is none"
    software::unpack pyxis
    CPPFLAGS=-I$ULTRACLUSTER_ROOT$SLURM/include make -C "$UNPACKED" install prefix="$UNPACKED/staged" libdir="$UNPACKED/staged/lib" \
      datarootdir="$UNPACKED/staged/share" || step::fail "pyxis cannot be built here: see the lines of make above"
    software::publish "$UNPACKED/staged/lib/slurm" "$own"
  fi
  pyxis::is_linked || pyxis::link
  pyxis::is_plugged || pyxis::plug
  software::clean pyxis
}

pyxis::verify() {
  local path
  pyxis::find_slurm
  path=$(pyxis::path)
  [[ -n $path ]] || step::fail "there is no spank_pyxis.so after the set-up"
  [[ -e $ULTRACLUSTER_ROOT$PYXIS_LINK ]] || step::fail "$PYXIS_LINK leads nowhere"
  pyxis::is_linked || step::fail "$PYXIS_LINK does not lead to $path"
  pyxis::is_plugged || step::fail "no plugstack names a spank_pyxis.so that is there"
  if [[ $path == /opt/ultracluster/* ]]; then
    step::version "${RELEASE['pyxis.version']}"
  else
    step::component pyxis kept '' "${RELEASE['pyxis.version']}" "the image's own: $path"
  fi
  step::message "$path, for Slurm $SLURM_VERSION"
}
