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
  assert::last_log_line "DEGRADED scratch: scratch: no /scratch on local disks (mkfs.xfs is not on this image: build it in (packages lvm2 and xfsprogs))"
}
