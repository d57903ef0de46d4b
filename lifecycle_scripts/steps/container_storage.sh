# shellcheck shell=bash
# Libraries: files mounts
# What container runtimes and the kubelet write, on a large disk: an image of a training framework takes 20 to 40 GB unpacked,
# the root disk has 20 to 100. The work is in files/container_storage.sh, which also runs at boot. On HyperPod's EKS the data
# volume (AWS's sample puts both there), elsewhere the local disks that /scratch is on, which keeps what is left of them.
#
# On Amazon EKS nodeadm then also pulls images in parallel: FastImagePull is for fast disks, and is ignored on small nodes
# (awslabs/amazon-eks-ami, nodeadm/doc/examples.md).

readonly CONTAINER_STORAGE_TOOL=/usr/local/sbin/ultracluster-container-storage
readonly CONTAINER_STORAGE_UNIT=/etc/systemd/system/ultracluster-container-storage.service
readonly CONTAINER_STORAGE_CONFIG=/etc/ultracluster/container-storage
readonly CONTAINER_STORAGE_NODEADM=/etc/eks/nodeadm.d
readonly CONTAINER_STORAGE_FAST_PULL=$CONTAINER_STORAGE_NODEADM/50-ultracluster-fast-image-pull.yaml

container_storage::detect() {
  local missing
  container_storage::plan
  [[ -n $FOLDERS ]] || step::not_applicable "no container runtime here, or the image has moved its data itself"
  [[ -n $STORE ]] || step::not_applicable "neither local disks nor a data volume"
  missing=$(container_storage::missing)
  [[ -z $missing ]] || step::absent "to do: ${missing//$'\n'/, }"
  step::present "$(container_storage::status)"
}

# Sets VOLUME, STORE and FOLDERS, as the tool reads them.
container_storage::plan() {
  local place
  VOLUME='' STORE='' FOLDERS=$(container_storage::folders)
  for place in $(container_storage::places); do
    case $place in
      scratch)
        STORE=$(container_storage::beside_scratch)
        ;;
      mounted_volume | volume)
        [[ $place == volume || -n $(mounts::at "${NODE_DATA_VOLUME:-/none}") ]] || continue
        VOLUME=${NODE_DATA_VOLUME:-}
        STORE=${VOLUME:+$VOLUME/ultracluster-containers}
        ;;
    esac
    [[ -z $STORE ]] || return 0
  done
}

container_storage::places() {
  # A volume that is not there yet is waited for, unless there are other disks.
  if [[ $NODE_FAMILY == hyperpod-eks ]]; then echo mounted_volume scratch volume; else echo scratch volume; fi
}

# On the same disks as /scratch: in it, or beside it where it is a link into, or a file in, a mount of the image.
container_storage::beside_scratch() {
  local target device
  read -r _ device <<<"$(mounts::at /scratch)" || true
  if [[ -L $ULTRACLUSTER_ROOT/scratch ]]; then
    target=/$(readlink "$ULTRACLUSTER_ROOT/scratch")
    printf '%s/ultracluster-containers' "${target%/scratch}"
  elif [[ $device == /dev/loop* ]]; then
    read -r target <"$ULTRACLUSTER_ROOT/sys/block/${device#/dev/}/loop/backing_file"
    printf '%s/ultracluster-containers' "${target%/ultracluster-scratch/*}"
  elif [[ -n $device ]]; then
    printf '/scratch/.ultracluster-containers'
  fi
}

# Of what is on this image; what it has moved to another place itself, by a link, a mount or its configuration, stays there.
container_storage::folders() {
  local folder folders=()
  for folder in $(container_storage::candidates); do
    [[ ! -L $ULTRACLUSTER_ROOT$folder ]] || continue
    container_storage::is_foreign "$folder" || folders+=("$folder")
  done
  printf '%s' "${folders[*]-}"
}

container_storage::candidates() {
  local -r root=$ULTRACLUSTER_ROOT
  if [[ -e $root/usr/bin/containerd || -e $root/usr/local/bin/containerd ]] &&
    ! grep -Eqs '^[[:space:]]*root[[:space:]]*=[[:space:]]*"/' <(grep -v '"/var/lib/containerd"' "$root/etc/containerd/config.toml" 2>/dev/null); then
    echo /var/lib/containerd
  fi
  if [[ -e $root/usr/bin/dockerd ]] && ! grep -Fqs '"data-root"' "$root/etc/docker/daemon.json"; then
    echo /var/lib/docker
  fi
  if [[ $NODE_FAMILY == hyperpod-eks || $NODE_FAMILY == eks-al2023 ]]; then
    echo /var/lib/kubelet
    echo /var/log/pods
    [[ ! -e $root/usr/bin/soci-snapshotter-grpc ]] || echo /var/lib/soci-snapshotter-grpc
  fi
}

# Mounted, and not by us: our mounts show their folder of the store.
container_storage::is_foreign() {
  local folder point shown=''
  while read -r _ _ _ folder point _; do
    [[ $point != "$1" ]] || shown=$folder
  done <"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  [[ -n $shown && $shown != *ultracluster-containers/* ]]
}

container_storage::status() {
  bash "$ULTRACLUSTER_HOME/files/container_storage.sh" status
}

container_storage::config() {
  printf '# Ultracluster\nVOLUME=%s\nSTORE=%s\nFOLDERS=%s\n' "$VOLUME" "$STORE" "$FOLDERS"
}

# What is not as it should be, one thing per line
container_storage::missing() {
  local status
  files::same "$ULTRACLUSTER_HOME/files/container_storage.sh" "$CONTAINER_STORAGE_TOOL" || echo "$CONTAINER_STORAGE_TOOL"
  files::same "$ULTRACLUSTER_HOME/files/container_storage.service" "$CONTAINER_STORAGE_UNIT" || echo "$CONTAINER_STORAGE_UNIT"
  cmp --silent <(container_storage::config) "$ULTRACLUSTER_ROOT$CONTAINER_STORAGE_CONFIG" || echo "$CONTAINER_STORAGE_CONFIG"
  systemctl is-enabled --quiet ultracluster-container-storage.service || echo "its service"
  status=$(container_storage::status)
  [[ $status == ready* ]] || echo "${status#absent: }"
  container_storage::pulls_fast || echo "$CONTAINER_STORAGE_FAST_PULL"
}

# Only where nodeadm reads further files, has the snapshotter, and images go to local disks
container_storage::pulls_fast() {
  [[ $NODE_FAMILY != eks-al2023 || -n $VOLUME || ! -d $ULTRACLUSTER_ROOT$CONTAINER_STORAGE_NODEADM ||
    ! -e $ULTRACLUSTER_ROOT/usr/bin/soci-snapshotter-grpc ]] ||
    cmp --silent <(container_storage::fast_pull) "$ULTRACLUSTER_ROOT$CONTAINER_STORAGE_FAST_PULL"
}

container_storage::fast_pull() {
  cat <<'EOT'
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
EOT
}

container_storage::install() {
  local reason
  container_storage::plan
  files::install "$ULTRACLUSTER_HOME/files/container_storage.sh" "$CONTAINER_STORAGE_TOOL" 0755
  files::install "$ULTRACLUSTER_HOME/files/container_storage.service" "$CONTAINER_STORAGE_UNIT"
  container_storage::config | files::write "$CONTAINER_STORAGE_CONFIG"
  systemctl daemon-reload
  systemctl enable ultracluster-container-storage.service
  # The last line that the tool prints says why it gave up.
  reason=$(bash "$ULTRACLUSTER_HOME/files/container_storage.sh" up 2>&1 | tee /dev/stderr | tail --lines 1) || step::fail "$reason"
  container_storage::pulls_fast || container_storage::fast_pull | files::write "$CONTAINER_STORAGE_FAST_PULL"
}

container_storage::verify() {
  local missing
  container_storage::plan
  missing=$(container_storage::missing)
  [[ -z $missing ]] || step::fail "not as it should be: ${missing//$'\n'/, }"
  step::message "$FOLDERS in $STORE"
}
