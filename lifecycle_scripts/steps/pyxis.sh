# shellcheck shell=bash
# pyxis: `srun --container-image`. A plugin of Slurm that works with exactly the Slurm it was compiled against, so our own
# build carries Slurm's version in its path, and another Slurm means another build.

pyxis::detect() {
  local path
  software::for pyxis compute login controller
  pyxis::find_slurm || step::not_applicable "no Slurm here"
  path=$(pyxis::path)
  [[ -n $path ]] || step::absent "no spank_pyxis.so for Slurm $SLURM_VERSION"
  pyxis::is_plugged || step::absent "no plugstack names $path"
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
  SLURM_VERSION=$({ "$ULTRACLUSTER_ROOT$SLURM/bin/srun" --version 2>/dev/null || true; } | sed 's/^slurm *//')
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

pyxis::is_plugged() {
  local plugstack
  plugstack=$(pyxis::plugstack)
  [[ -z $plugstack || -n ${NODE_BAKE:-} ]] || grep -Eqs "^[[:space:]]*(required|optional)[[:space:]]+[^#]*spank_pyxis\.so" \
    "$ULTRACLUSTER_ROOT$plugstack" "$ULTRACLUSTER_ROOT${plugstack%/*}"/plugstack.conf.d/*.conf "$ULTRACLUSTER_ROOT${plugstack%/*}"/pyxis.conf
}

pyxis::fetch() { release::facts && software::fetch pyxis; }

pyxis::install() {
  local own plugstack path text
  release::facts
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
  path=$(pyxis::path)
  plugstack=$(pyxis::plugstack)
  if [[ -n $plugstack ]] && ! pyxis::is_plugged; then
    text=$(cat "$ULTRACLUSTER_ROOT$plugstack" 2>/dev/null || true)
    files::write "$plugstack" <<<"${text:+$text$'\n'}required $path"
  fi
  software::clean pyxis
}

pyxis::verify() {
  local path
  release::facts
  pyxis::find_slurm
  path=$(pyxis::path)
  [[ -n $path ]] || step::fail "there is no spank_pyxis.so after the set-up"
  pyxis::is_plugged || step::fail "no plugstack names spank_pyxis.so"
  [[ $path != /opt/ultracluster/* ]] || step::version "${RELEASE['pyxis.version']}"
  step::message "$path, for Slurm $SLURM_VERSION"
}
