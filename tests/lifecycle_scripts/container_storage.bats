#!/usr/bin/env bats
# What container runtimes and the kubelet write, on a large disk.

load helpers

# A Slurm node with Docker and containerd, its local disks at /scratch.
scenario() {
  mkdir -p "$ULTRACLUSTER_ROOT"/{usr/bin,scratch,var/lib/containerd/pause,var/lib/docker,run/containerd} "$FAKE"/units/{containerd,docker,kubelet}
  touch "$ULTRACLUSTER_ROOT"/usr/bin/{containerd,dockerd}
  echo image >"$ULTRACLUSTER_ROOT/var/lib/containerd/pause/layer"
  chmod 1777 "$ULTRACLUSTER_ROOT/scratch"
  [[ -z ${RUNNING:-} ]] || touch "$FAKE"/units/{containerd,docker}/active
  echo '80 1 253:0 / /scratch rw,noatime shared:9 - xfs /dev/mapper/ultracluster-scratch rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

# on_kubernetes FAMILY
on_kubernetes() {
  rm "$ULTRACLUSTER_ROOT/usr/bin/dockerd"
  mkdir -p "$ULTRACLUSTER_ROOT"/{opt/sagemaker,var/lib/kubelet/pki} "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id"
  if [[ $1 == hyperpod-eks ]]; then
    sed -i 's/"ClusterType": "Slurm"/"ClusterType": "Kubernetes"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
    sed -i 's|"local_nvme_disks": 8}|"local_nvme_disks": 8, "data_volume": "/opt/sagemaker"}|' "$SCRIPTS/cluster.json"
  else
    rm "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
    echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
    mkdir -p "$ULTRACLUSTER_ROOT/etc/eks/nodeadm.d"
    touch "$ULTRACLUSTER_ROOT/usr/bin/soci-snapshotter-grpc"
  fi
}

mount_volume() {
  echo '81 1 259:99 / /opt/sagemaker rw shared:10 - ext4 /dev/nvme1n1 rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

storage() {
  if [[ -e $ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json ]]; then
    on_node ULTRACLUSTER_VOLUME_SECONDS=0 bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; entry::main container_storage"
  else
    on_node bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; ENTRY_IDENTIFY=entry::identify_eks; ENTRY_GROUP=; entry::main container_storage"
  fi
}

message() { tail -n 1 <(grep '"step": "container_storage"' "$REPORT") | sed 's/.*"message": "\([^"]*\)".*/\1/'; }
bound() { awk '$2 == 1 && $1 == 99 { print $5 }' "$ULTRACLUSTER_ROOT/proc/self/mountinfo" | xargs; }

@test "Slurm: Docker and containerd go to the local disks, with what the image has in them" {
  run storage
  assert::status 0
  assert::states container_storage=installed
  assert::equal '/var/lib/containerd /var/lib/docker' "$(bound)"
  assert::equal image "$(cat "$ULTRACLUSTER_ROOT/scratch/.ultracluster-containers/var-lib-containerd/pause/layer")"
  assert::equal 711 "$(stat --format %a "$ULTRACLUSTER_ROOT/scratch/.ultracluster-containers")"
  assert::called 'systemctl enable ultracluster-container-storage.service'
  forget_calls
  run storage
  assert::states container_storage=already
  assert::no_changes
}

@test "beside /scratch where that is a link into a mount of the image" {
  rmdir "$ULTRACLUSTER_ROOT/scratch"
  mkdir -p "$ULTRACLUSTER_ROOT/opt/dlami/nvme/scratch"
  ln -s opt/dlami/nvme/scratch "$ULTRACLUSTER_ROOT/scratch"
  run storage
  assert::status 0
  [[ -d $ULTRACLUSTER_ROOT/opt/dlami/nvme/ultracluster-containers/var-lib-containerd ]]
}

@test "at the next boot the disks are empty: filled from the image, before the services" {
  storage 2>/dev/null
  rm -rf "$ULTRACLUSTER_ROOT/scratch/.ultracluster-containers"
  sed -i '/^99 1/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-container-storage" up
  assert::status 0
  assert::equal '/var/lib/containerd /var/lib/docker' "$(bound)"
  assert::equal image "$(cat "$ULTRACLUSTER_ROOT/scratch/.ultracluster-containers/var-lib-containerd/pause/layer")"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/systemd/system/ultracluster-container-storage.service")" 'Before=containerd.service'
}

@test "running services are stopped and started again, in the right order" {
  touch "$FAKE"/units/{containerd,docker}/active
  run storage
  assert::status 0
  assert::equal 'stop docker.service stop containerd.service start containerd.service start docker.service' \
    "$(sed -n 's/^systemctl \(st[a-z]* [a-z]*.service\)$/\1/p' "$FAKE/calls" | xargs)"
}

@test "running containers and pods are left alone" {
  touch "$FAKE/units/containerd/active"
  mkdir -p "$ULTRACLUSTER_ROOT/run/containerd/io.containerd.runtime.v2.task/moby/0123"
  run storage
  assert::equal 'containers run on this node: what they use is not moved' "$(message)"
  assert::never_called 'systemctl stop'
  assert::equal '' "$(bound)"
  rm -r "$ULTRACLUSTER_ROOT/run/containerd/io.containerd.runtime.v2.task"
  echo '90 1 0:90 / /var/lib/kubelet/pods/1-2/volumes/token rw - tmpfs tmpfs rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run storage
  assert::equal 'pods run on this node: what they use is not moved' "$(message)"
}

@test "what the image has moved itself stays: a link, a mount, its configuration" {
  rm -r "$ULTRACLUSTER_ROOT/var/lib/docker"
  ln -s /opt/docker "$ULTRACLUSTER_ROOT/var/lib/docker"
  mkdir -p "$ULTRACLUSTER_ROOT/etc/containerd"
  echo 'root = "/opt/dlami/nvme/containerd"' >"$ULTRACLUSTER_ROOT/etc/containerd/config.toml"
  run storage
  assert::states container_storage=skipped
  rm "$ULTRACLUSTER_ROOT/etc/containerd/config.toml"
  echo '82 1 253:9 /docker /var/lib/containerd rw - xfs /dev/mapper/vg rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run storage
  assert::states container_storage=skipped
}

@test "a folder that somebody else put in our place is not trusted" {
  mkdir -p "$SANDBOX/theirs"
  ln -s "$SANDBOX/theirs" "$ULTRACLUSTER_ROOT/scratch/.ultracluster-containers"
  run storage
  assert::equal '/scratch/.ultracluster-containers is not a folder of root' "$(message)"
  assert::equal '' "$(ls -A "$SANDBOX/theirs")"
}

@test "no local disks and no data volume: nothing to do" {
  sed -i '/ \/scratch /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run storage
  assert::status 0
  assert::states container_storage=skipped
}

@test "HyperPod EKS: containerd and the kubelet go to the data volume, and never below its mount point" {
  on_kubernetes hyperpod-eks
  sed -i '/ \/scratch /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run storage
  assert::equal '/opt/sagemaker is not mounted: containers stay on the root disk' "$(message)"
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/opt/sagemaker")"
  mount_volume
  run storage
  assert::status 0
  assert::equal '/var/lib/containerd /var/lib/kubelet /var/log/pods' "$(bound)"
  [[ -d $ULTRACLUSTER_ROOT/opt/sagemaker/ultracluster-containers/var-lib-kubelet/pki ]]
}

@test "HyperPod EKS: without a data volume, beside the file that /scratch is" {
  on_kubernetes hyperpod-eks
  mkdir -p "$ULTRACLUSTER_ROOT"/{opt/dlami/nvme/ultracluster-scratch,sys/block/loop0/loop}
  echo /opt/dlami/nvme/ultracluster-scratch/disk.xfs >"$ULTRACLUSTER_ROOT/sys/block/loop0/loop/backing_file"
  sed -i 's|/dev/mapper/ultracluster-scratch|/dev/loop0|' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run storage
  assert::status 0
  assert::equal '/var/lib/containerd /var/lib/kubelet /var/log/pods' "$(bound)"
  [[ -d $ULTRACLUSTER_ROOT/opt/dlami/nvme/ultracluster-containers/var-lib-kubelet/pki ]]
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/scratch")"
}

@test "EKS: the local disks, and images are pulled in parallel" {
  on_kubernetes eks
  run storage
  assert::status 0
  assert::equal '/var/lib/containerd /var/lib/kubelet /var/log/pods /var/lib/soci-snapshotter-grpc' "$(bound)"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/eks/nodeadm.d/50-ultracluster-fast-image-pull.yaml")" 'FastImagePull: true'
  run storage
  assert::states container_storage=already
}

@test "killed at any change, the next run completes it" {
  kill_everywhere container_storage 4
}

@test "killed while the runtimes are stopped, the next run starts them again" {
  RUNNING=yes
  node::renew
  kill_everywhere container_storage 9
  [[ -e $FAKE/units/containerd/active && -e $FAKE/units/docker/active ]]
}
