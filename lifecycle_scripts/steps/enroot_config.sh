# shellcheck shell=bash
# Libraries: files mounts
# enroot's configuration: where it unpacks containers and keeps what it downloads, and the hooks without which `srun --mpi=pmix --container-image` has no
# PMIx in the container. What the image has configured stays, but for paths in the users' homes.

readonly ENROOT_CONFIG_MAIN=/etc/enroot/enroot.conf
readonly ENROOT_CONFIG_OWN=/etc/enroot/enroot.conf.d/90-ultracluster.conf
readonly ENROOT_CONFIG_TOOL=/opt/ultracluster/bin/enroot-folder
readonly ENROOT_CONFIG_BASE=/etc/ultracluster/enroot-base
readonly ENROOT_CONFIG_CACHE=/etc/ultracluster/enroot-cache
readonly ENROOT_CONFIG_HOOKS=(50-slurm-pmi.sh 50-slurm-pytorch.sh)
# Where nodes have neither local disks nor a data volume
readonly ENROOT_CONFIG_ROOT_DISK=/var/lib/ultracluster/enroot

enroot_config::detect() {
  local missing
  [[ $NODE_ROLE != system ]] || step::not_applicable "a system node runs no jobs"
  [[ -e $ULTRACLUSTER_ROOT/usr/bin/enroot || -e $ULTRACLUSTER_ROOT/usr/local/bin/enroot ]] || step::not_applicable "no enroot here"
  missing=$(enroot_config::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "in place"
}

enroot_config::missing() {
  local hook
  files::same "$ULTRACLUSTER_HOME/files/enroot.conf" "$ENROOT_CONFIG_OWN" || echo "$ENROOT_CONFIG_OWN"
  files::same "$ULTRACLUSTER_HOME/files/enroot_folder.sh" "$ENROOT_CONFIG_TOOL" || echo "$ENROOT_CONFIG_TOOL"
  [[ -n ${NODE_BAKE:-} ]] || cmp --silent <(enroot_config::base) "$ULTRACLUSTER_ROOT$ENROOT_CONFIG_BASE" || echo "$ENROOT_CONFIG_BASE"
  [[ -n ${NODE_BAKE:-} || $(stat --format %a "$ULTRACLUSTER_ROOT$(enroot_config::base)" 2>/dev/null) == 1777 ]] || enroot_config::base
  [[ -n ${NODE_BAKE:-} || $(enroot_config::cache) == "$(cat "$ULTRACLUSTER_ROOT$ENROOT_CONFIG_CACHE" 2>/dev/null)" ]] || echo "$ENROOT_CONFIG_CACHE"
  [[ -z $(enroot_config::in_homes) ]] || echo "paths in homes in $ENROOT_CONFIG_MAIN"
  for hook in "${ENROOT_CONFIG_HOOKS[@]}"; do
    [[ -x $ULTRACLUSTER_ROOT/etc/enroot/hooks.d/$hook ]] || echo "hook $hook"
  done
}

# The folder for nodes without /scratch
enroot_config::base() {
  if [[ -n ${NODE_DATA_VOLUME:-} && -n $(mounts::at "$NODE_DATA_VOLUME") ]]; then
    echo "$NODE_DATA_VOLUME/enroot"
  else
    echo "$ENROOT_CONFIG_ROOT_DISK"
  fi
}

# The folder of downloaded layers that all nodes share, on Lustre; empty where none is mounted, or where it cannot be root's own (root
# squash, somebody was first): then each node keeps its own. Each user has a folder there that others cannot enter, since enroot takes a
# layer by its name and does not check it again. Nodes that download the same layer disturb nobody: enroot writes a file of its own, checks
# its digest and renames it (src/docker.sh, docker::_download_extract, 3.4.1 to 4.1.2).
enroot_config::cache() {
  local -r folder=${LUSTRE_PATH:-}/.enroot-cache
  [[ -n ${LUSTRE_PATH:-} && $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]] || return 0
  [[ $(stat --format '%a %u' "$ULTRACLUSTER_ROOT$folder" 2>/dev/null) != "1777 $EUID" || -L $ULTRACLUSTER_ROOT$folder ]] || echo "$folder"
}

enroot_config::make_cache() {
  local -r folder=$ULTRACLUSTER_ROOT${LUSTRE_PATH:-}/.enroot-cache
  [[ -n ${LUSTRE_PATH:-} && $(mounts::at "$LUSTRE_PATH") == 'lustre '* ]] || return 0
  # A folder that is there is another node's, or somebody else's: its mode is not touched.
  [[ -e $folder || -L $folder ]] || { mkdir -m 1777 "$folder" && chmod 1777 "$folder"; } 2>/dev/null || true
  [[ -n $(enroot_config::cache) ]] || log::warn "$LUSTRE_PATH/.enroot-cache is not a folder of root's with mode 1777: each node downloads container layers for itself"
}

# Lines of the main file that lead into a home or onto a shared file system, where nodes get in each other's way
enroot_config::in_homes() {
  local shared='\$\{?(HOME|XDG_[A-Z]+_HOME)|[ \t=]~|[ \t=]/home/' path
  for path in "${LUSTRE_PATH:-}" $(mounts::further) "${OPENZFS_PATH:-}"; do
    [[ -z $path ]] || shared+="|[ \t=]${path//./\\.}/"
  done
  grep -E "^[[:space:]]*ENROOT_(RUNTIME|DATA|TEMP)_PATH[ \t=]" "$ULTRACLUSTER_ROOT$ENROOT_CONFIG_MAIN" 2>/dev/null | grep -E -- "$shared" || true
}

enroot_config::install() {
  local hook source line text
  files::install "$ULTRACLUSTER_HOME/files/enroot_folder.sh" "$ENROOT_CONFIG_TOOL" 0755
  if [[ -z ${NODE_BAKE:-} ]]; then
    enroot_config::base | files::write "$ENROOT_CONFIG_BASE"
    enroot_config::make_cache
    enroot_config::cache | files::write "$ENROOT_CONFIG_CACHE"
    mkdir -p "$ULTRACLUSTER_ROOT$(enroot_config::base)"
    chmod 1777 "$ULTRACLUSTER_ROOT$(enroot_config::base)"
  fi
  if [[ -n $(enroot_config::in_homes) ]]; then
    text=$(cat "$ULTRACLUSTER_ROOT$ENROOT_CONFIG_MAIN")
    while IFS= read -r line; do text=${text//"$line"/"#$line"}; done < <(enroot_config::in_homes)
    files::write "$ENROOT_CONFIG_MAIN" <<<"$text"
  fi
  for hook in "${ENROOT_CONFIG_HOOKS[@]}"; do
    [[ ! -x $ULTRACLUSTER_ROOT/etc/enroot/hooks.d/$hook ]] || continue
    for source in "$ULTRACLUSTER_ROOT"/usr/{share,local/share}/enroot/hooks.d/"$hook"; do
      [[ ! -e $source ]] || files::install "$source" "/etc/enroot/hooks.d/$hook" 0755
    done
    [[ -x $ULTRACLUSTER_ROOT/etc/enroot/hooks.d/$hook ]] ||
      step::fail "this enroot brings no hook $hook in /usr/share/enroot/hooks.d: containers under srun have no PMIx"
  done
  files::install "$ULTRACLUSTER_HOME/files/enroot.conf" "$ENROOT_CONFIG_OWN"
}

enroot_config::verify() {
  local missing
  missing=$(enroot_config::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  local place=/scratch
  [[ -d $ULTRACLUSTER_ROOT/scratch ]] || place=$(enroot_config::base)
  local -r shared=$(enroot_config::cache)
  step::message "containers in $place, downloads in ${shared:-$place}"
}
