#!/usr/bin/env bats
# The entry for OnCreate: file systems and Slurm daemons are ours to start.

load helpers

@test "a compute node gets its file systems and slurmd, and a second run changes nothing" {
  local before
  run on_create
  assert::status 0
  assert::states metadata=skipped limits=installed filesystems=installed homes=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=installed container_storage=skipped job_access=skipped health=skipped slurm=installed slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
  assert::called "mount -t lustre -o relatime,flock fs-0123.fsx.us-east-1.amazonaws.com@tcp:/abcdefgh $ULTRACLUSTER_ROOT/fsx"
  assert::called "mount -t nfs -o nfsvers=4.2,nconnect=16 fs-4567.fsx.us-east-1.amazonaws.com:/fsx $ULTRACLUSTER_ROOT/home"
  assert::called "systemctl restart --no-block slurmd.service"
  assert::never_called 'systemctl start slurmctld'
  assert::equal "SLURMD_OPTIONS=--conf-server=10.1.0.10" "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/slurmd.env")"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/systemd/system/slurmd.service.d/20-ultracluster-configless.conf")" "Restart=on-failure"
  before=$(snapshot)
  forget_calls
  run on_create
  assert::status 0
  assert::states metadata=skipped limits=already filesystems=already homes=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=already container_storage=skipped job_access=skipped health=skipped slurm=already slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
  assert::no_changes
  assert::equal "$before" "$(snapshot)"
}

@test "a controller gets slurmctld and no slurmd" {
  node::is_controller
  run on_create
  assert::status 0
  assert::states metadata=skipped limits=installed filesystems=installed homes=skipped session_user=skipped state_pull=skipped users=skipped directory=skipped scratch=skipped container_storage=skipped job_access=skipped health=skipped slurm=installed slurm_conf=skipped job_ssh=skipped slurm_admin=skipped
  [[ -e $FAKE/units/slurmctld/enabled && -e $FAKE/units/slurmctld/active ]]
  [[ ! -e $FAKE/units/slurmd/enabled ]]
  assert::never_called 'systemctl start slurmdbd'
}
