# shellcheck shell=bash
# Disks of the node itself: room and write access where jobs need them, local disks that are there and live. What the kernel
# logs of a disk is for xid.sh and watch.py.

# Root's, logs, state of slurmd and of this package, local scratch: those that are mounts of their own are looked at
readonly DISKS_PLACES=(/ /var /tmp /var/lib /var/log /var/spool /opt /scratch /opt/dlami/nvme /opt/sagemaker /run)
# Jobs' own: whoever fills them harms no other node, and nobody but jobs empties them
readonly DISKS_SCRATCH=(/tmp /scratch /opt/dlami/nvme /opt/sagemaker)
# slurmd cannot write a job's script any more.
readonly DISKS_LEAST_KIB=262144
readonly DISKS_LOW_PERCENT=5

disks::applies() { [[ ${NODE_FAMILY:-} != *eks* ]]; }

disks::quick() {
  disks::writable
  disks::room
  disks::local
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "file systems have room and take files${DISKS_SAID:+, $DISKS_SAID}"
}

# Options of the file system itself (after the dash) tell what an error has made of it; those of the mount may be on purpose.
disks::writable() {
  local point options rest type super
  while read -r _ _ _ _ point options rest; do
    [[ " ${DISKS_PLACES[*]} " == *" $point "* ]] || continue
    read -r type _ super <<<"${rest#* - }"
    [[ $type == @(ext4|xfs|btrfs|ext3) ]] || continue
    [[ ",$super," != *,ro,* || ",$options," == *,ro,* && $point != / ]] || health::fault readonly "$point ($type) is read-only"
  done <"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

disks::room() {
  local line target kib size places=()
  for line in "${DISKS_PLACES[@]}"; do [[ ! -d $ULTRACLUSTER_ROOT$line ]] || places+=("$ULTRACLUSTER_ROOT$line"); done
  health::tool 1 df --local --output=avail,size,target -k "${places[@]}"
  local -A seen=()
  while read -r kib size target; do
    [[ $kib =~ ^[0-9]{1,15}$ && $size =~ ^[1-9][0-9]{0,14}$ && -n $target && -z ${seen["$target"]:-} ]] || continue
    seen["$target"]=yes
    # smaller ones (/run, /boot) are full at other figures
    ((size > 4 * DISKS_LEAST_KIB)) || continue
    if ((kib < DISKS_LEAST_KIB)) && [[ " ${DISKS_SCRATCH[*]} " != *" ${target#"$ULTRACLUSTER_ROOT"} "* ]]; then
      health::fault full "$target has $((kib / 1024)) MiB left"
    elif ((kib * 100 < size * DISKS_LOW_PERCENT)); then
      health::fault low "$target has $((kib / 1024 / 1024)) GiB of $((size / 1024 / 1024)) left"
    fi
  done <<<"$TOOL_TEXT"
  ((${#seen[@]} > 0)) || health::unknown unread "df (status $TOOL_STATUS) does not tell how much room there is: ${TOOL_TEXT:0:200}"
}

# Instance store by the controllers' own model; a root volume and data volumes are EBS.
disks::local() {
  local controller model state found=0 expected=${NODE_LOCAL_NVME_DISKS:-}
  DISKS_SAID=
  for controller in "$ULTRACLUSTER_ROOT"/sys/class/nvme/nvme*; do
    [[ -e $controller/model ]] || continue
    health::read model "$controller/model"
    health::read state "$controller/state"
    [[ -z $state || $state == live || $state == @(new|resetting|connecting) ]] || health::fault state "${controller##*/} is '${state:0:40}'" "${controller##*/}"
    [[ $model != *'Instance Storage'* ]] || found=$((found + 1))
  done
  [[ $expected =~ ^[1-9][0-9]?$ ]] || return 0
  DISKS_SAID="$found local disks"
  ((found >= expected)) || health::fault missing "$found local disks of $expected"
}

# What a disk says of itself; not every instance store does.
disks::idle() {
  local controller
  command -v nvme >/dev/null || { health::unknown absent "there is no nvme on this node" && return; }
  for controller in "$ULTRACLUSTER_ROOT"/sys/class/nvme/nvme*; do
    [[ -e $controller/model ]] || continue
    controller=${controller##*/}
    health::tool 10 nvme smart-log "/dev/$controller"
    [[ $TOOL_TEXT =~ critical_warning[[:space:]]*:[[:space:]]*(0x)?([0-9a-fA-F]+) ]] || continue
    ((16#${BASH_REMATCH[2]} == 0)) || health::fault worn "$controller: critical warning ${BASH_REMATCH[2]}" "$controller"
  done
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "no disk warns of itself"
}
