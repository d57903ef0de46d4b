#!/usr/bin/env bats
# /scratch on the local NVMe disks, at provisioning and at boot.

load helpers

@test "one disk is not striped" {
  node::disks 1
  run run_steps scratch
  assert::status 0
  assert::never_called 'lvm lvcreate.*--stripes'
  assert::contains "$output" "should have 8 local NVMe disks, found 1"
}

@test "EBS volumes are never touched" {
  run run_steps scratch
  assert::never_called '.*nvme0n1'
  assert::never_called '.*nvme99n1'
}

@test "a mount that the image offers is used as it is" {
  node::image_mount
  run run_steps scratch
  assert::status 0
  assert::never_called mkfs.xfs
  assert::never_called 'lvm vgcreate'
  assert::equal opt/dlami/nvme/scratch "$(readlink "$ULTRACLUSTER_ROOT/scratch")"
  assert::equal 1777 "$(stat --format %a "$ULTRACLUSTER_ROOT/opt/dlami/nvme/scratch")"
}

@test "the image's own set-up of the disks is waited for" {
  node::disks 8
  mkdir -p "$FAKE/units/dlami-nvme"
  touch "$FAKE/units/dlami-nvme/enabled"
  declare -f node::image_mount node::disks >"$FAKE/units/dlami-nvme/start"
  echo node::image_mount >>"$FAKE/units/dlami-nvme/start"
  run run_steps scratch
  assert::status 0
  assert::never_called mkfs.xfs
  [[ -L $ULTRACLUSTER_ROOT/scratch ]]
}

@test "after a stop and start, boot brings scratch back on empty disks" {
  run_steps scratch
  : >"$FAKE/lvm/pvs"
  rm "$FAKE"/lvm/{vg,lv,tags} "$FAKE/formatted"
  sed -i '/scratch/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-scratch" up
  assert::status 0
  assert::contains "$(tail -n 1 "$ULTRACLUSTER_ROOT/proc/self/mountinfo")" "253:0 / /scratch "
}

@test "after a reboot, boot mounts what is there and formats nothing" {
  run_steps scratch
  sed -i '/scratch/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  forget_calls
  run on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-scratch" up
  assert::status 0
  assert::never_called mkfs.xfs
  assert::never_called 'lvm vgcreate'
}

@test "a stripe that has lost a disk is built anew" {
  run_steps scratch
  sed -i '/scratch/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  echo 1 >"$FAKE/lvm/missing"
  run on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-scratch" up
  assert::status 0
  assert::equal 2 "$(grep -c '^lvm vgcreate' "$FAKE/calls")"
}

@test "a disk with foreign data is not overwritten" {
  node::disks 8 ext4
  run run_steps scratch
  assert::status 0
  assert::never_called mkfs.xfs
  assert::states scratch=degraded
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED scratch: scratch: no /scratch on local disks (will not overwrite /dev/nvme1n1 (ext4)"
}

@test "a missing tool is named" {
  rm "$SANDBOX/bin/mkfs.xfs"
  run run_steps scratch
  assert::status 0
  assert::last_log_line "DEGRADED scratch: scratch: no /scratch on local disks (mkfs.xfs is not on this image: build it in (packages lvm2, xfsprogs and util-linux))"
}

apart() { printf '%s' "$ULTRACLUSTER_ROOT/opt/sagemaker/ultracluster-scratch/disk.xfs"; }
at_boot() { on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-scratch" up; }

@test "HyperPod EKS: half of the image's volume, apart from containerd and the kubelet" {
  node::hyperpod_eks_disks
  run run_steps scratch
  assert::status 0
  assert::states scratch=installed
  assert::equal 50000MiB "$(cat "$(apart)")"
  assert::contains "$(tail -n 1 "$ULTRACLUSTER_ROOT/proc/self/mountinfo")" " /scratch rw,relatime shared:9 - xfs /dev/loop0 rw"
  [[ ! -L $ULTRACLUSTER_ROOT/scratch ]]
  assert::equal 1777 "$(stat --format %a "$ULTRACLUSTER_ROOT/scratch")"
  assert::equal 700 "$(stat --format %a "$ULTRACLUSTER_ROOT/opt/sagemaker/ultracluster-scratch")"
  assert::never_called 'lvm (vg|lv|pv)(create|change|remove|extend)'
  run run_steps scratch
  assert::states scratch=already
}

@test "HyperPod EKS: a reboot mounts the same file again and formats nothing" {
  node::hyperpod_eks_disks
  run_steps scratch
  sed -i '/ \/scratch /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  rm -r "$ULTRACLUSTER_ROOT/sys/block/loop0"
  forget_calls
  run at_boot
  assert::status 0
  assert::never_called mkfs.xfs
  assert::never_called fallocate
  assert::contains "$(tail -n 1 "$ULTRACLUSTER_ROOT/proc/self/mountinfo")" " /scratch "
}

@test "HyperPod EKS: killed at any change, the next run completes it" {
  node::hyperpod_eks_disks
  prepare() { node::hyperpod_eks_disks; }
  kill_everywhere scratch 9
}

@test "HyperPod EKS: what an earlier version linked into the image's volume becomes apart" {
  node::hyperpod_eks_disks
  mkdir -p "$ULTRACLUSTER_ROOT/opt/sagemaker/scratch"
  ln -s opt/sagemaker/scratch "$ULTRACLUSTER_ROOT/scratch"
  run run_steps scratch
  assert::states scratch=installed
  [[ -d $ULTRACLUSTER_ROOT/scratch && ! -L $ULTRACLUSTER_ROOT/scratch ]]
}

@test "HyperPod EKS: a full volume keeps what is left for containers" {
  node::hyperpod_eks_disks
  echo 30000 >"$FAKE/used_mib"
  run run_steps scratch
  assert::states scratch=degraded
  assert::contains "$(tail -n 1 "$LOG")" "/opt/sagemaker is too full to take /scratch: 70000 of 100000 MiB are free"
  [[ ! -e $(apart) && ! -e $ULTRACLUSTER_ROOT/scratch ]]
}

@test "HyperPod EKS: a link in the place of the folder is not followed" {
  node::hyperpod_eks_disks
  mkdir "$SANDBOX/theirs"
  ln -s "$SANDBOX/theirs" "$ULTRACLUSTER_ROOT/opt/sagemaker/ultracluster-scratch"
  run run_steps scratch
  assert::states scratch=degraded
  assert::contains "$(tail -n 1 "$LOG")" "/opt/sagemaker/ultracluster-scratch is not a folder of root"
  assert::equal '' "$(ls -A "$SANDBOX/theirs")"
}

@test "HyperPod EKS: vg.01 that is not mounted is not claimed, and pods find no folder in the place of /scratch" {
  node::hyperpod_eks_disks unmounted
  mkdir "$ULTRACLUSTER_ROOT/scratch" # of an earlier boot
  run on_node bash "$SCRIPTS/files/scratch.sh" up
  assert::status 1
  assert::contains "$output" "HyperPod's image owns the local disks and has not mounted them (/dev/nvme1n1 (volume group vg.01)"
  assert::never_called 'lvm (vg|lv|pv)(create|change|remove|extend)'
  assert::never_called mkfs.xfs
  [[ ! -e $ULTRACLUSTER_ROOT/scratch ]]
  run run_steps scratch
  assert::states scratch=degraded
}

@test "HyperPod EKS: blank disks are the image's, too" {
  node::hyperpod_eks_disks unmounted
  node::disks 8
  run on_node bash "$SCRIPTS/files/scratch.sh" up
  assert::status 1
  assert::contains "$output" "has not mounted them (no volume group on them)"
  assert::never_called 'lvm vgcreate'
}

@test "HyperPod EKS: a volume that the image mounts late is waited for" {
  node::hyperpod_eks_disks unmounted
  (until_true grep -q '^lsblk' "$FAKE/calls" && node::hyperpod_eks_disks) 3>&- &
  run on_node ULTRACLUSTER_VOLUME_SECONDS=5 bash "$SCRIPTS/files/scratch.sh" up
  assert::status 0
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/proc/self/mountinfo")" " /scratch "
}
