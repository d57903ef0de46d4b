#!/usr/bin/env bash
# ultracluster-container-storage up|status: what container runtimes and the kubelet write goes to a large disk.
#
# `up` runs at provisioning and at every boot, before these services. /etc/ultracluster/container-storage has the path that
# must be a mount (VOLUME, may be empty), the folder on the disk (STORE), and the folders that are bound to it (FOLDERS).
# Bind mounts, as the image's own set-up of local disks on EKS makes them (awslabs/amazon-eks-ami, setup-local-disks): no
# configuration of a runtime is changed, which the orchestrator may write again. A disk that comes back empty after a stop is
# filled from the image again.
set -euo pipefail
export LC_ALL=C

readonly ROOT=${ULTRACLUSTER_ROOT:-}
readonly CONFIG=$ROOT/etc/ultracluster/container-storage
# In the order in which they are stopped; they start in the opposite one.
readonly SERVICES=(kubelet.service docker.socket docker.service soci-snapshotter.service containerd.service)
# Those that were stopped and have to run again, also for the run after one that was killed in the middle of this
readonly STOPPED=$ROOT/run/ultracluster-container-storage.stopped

VOLUME='' STORE='' FOLDERS=''
if [[ -r $CONFIG ]]; then
  while IFS='=' read -r key value; do
    case $key in VOLUME | STORE | FOLDERS) printf -v "$key" '%s' "$value" ;; esac
  done <"$CONFIG"
fi

is_mounted() {
  local point
  while read -r _ _ _ _ point _; do
    [[ $point != "$1" ]] || return 0
  done <"$ROOT/proc/self/mountinfo"
  return 1
}

# Folders that are still to be bound
waiting() {
  local folder
  for folder in $FOLDERS; do
    is_mounted "$folder" || echo "$folder"
  done
}

status() {
  local left
  left=$(waiting)
  if [[ -z $STORE ]]; then
    echo none
  elif [[ -e $STOPPED ]]; then
    echo "absent: services that were stopped for it"
  elif [[ -z $left ]]; then
    echo "ready in $STORE"
  else
    echo "absent: ${left//$'\n'/, }"
  fi
}

# The disk may be mounted by a service that runs beside this.
volume_is_there() {
  local left=${ULTRACLUSTER_VOLUME_SECONDS:-60}
  [[ -n $VOLUME ]] || return 0
  until is_mounted "$VOLUME"; do
    ((left > 0)) || return 1
    left=$((left - 1))
    sleep 1
  done
}

# What runs in containers now: pods have mounts below the kubelet's folder, every container has a folder of its shim.
running() {
  local folder
  awk '$5 ~ "^/var/lib/kubelet/pods/" { print "pods"; exit }' "$ROOT/proc/self/mountinfo"
  for folder in "$ROOT"/run/containerd/io.containerd.runtime.v2.task/*/*; do
    [[ ! -e $folder ]] || { echo containers && return; }
  done
}

up() {
  local folder service left busy
  [[ -n $STORE ]] || return 0
  left=$(waiting)
  [[ -n $left || -e $STOPPED ]] || return 0
  # Whatever comes, what ran runs again.
  trap restart EXIT
  volume_is_there || stop "$VOLUME is not mounted: containers stay on the root disk"
  busy=$(running)
  [[ -z $busy ]] || stop "${busy//$'\n'/ and } run on this node: what they use is not moved"
  [[ -n $left ]] || return 0
  make_store
  for service in "${SERVICES[@]}"; do
    systemctl is-active --quiet "$service" || continue
    echo "$service" >>"$STOPPED"
    systemctl stop "$service"
  done
  for folder in $left; do bind "$folder"; done
}

# In the opposite order
restart() {
  local number service
  [[ -e $STOPPED ]] || return 0
  for ((number = ${#SERVICES[@]} - 1; number >= 0; number--)); do
    service=${SERVICES[number]}
    ! grep -qxF -- "$service" "$STOPPED" || systemctl start "$service" || say "$service does not start"
  done
  rm -f -- "$STOPPED"
}

# Others may write beside it: only a folder of our own is used.
make_store() {
  mkdir -m 0711 "$ROOT$STORE" 2>/dev/null || true
  [[ -d $ROOT$STORE && ! -L $ROOT$STORE && -O $ROOT$STORE ]] || stop "$STORE is not a folder of root"
  chmod 0711 "$ROOT$STORE"
}

# /var/lib/containerd -> STORE/var-lib-containerd, with what the image has in it, whole or not at all
bind() {
  local -r folder=$1
  local name=${1#/}
  name=${name//\//-}
  local -r target=$ROOT$STORE/$name
  mkdir -p "$ROOT$folder"
  if [[ ! -d $target ]]; then
    rm -rf -- "$target.new"
    cp -a -- "$ROOT$folder" "$target.new"
    mv -T -- "$target.new" "$target"
  fi
  mount --bind "$target" "$ROOT$folder"
  say "$folder is in $STORE"
}

say() {
  printf 'container-storage: %s\n' "$1" >&2
}

stop() {
  printf '%s\n' "$1" >&2
  exit 1
}

case ${1:-} in
  up | status) "$1" ;;
  *) stop "usage: ultracluster-container-storage up|status" ;;
esac
