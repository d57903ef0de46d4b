#!/usr/bin/env bats
# The daemons that fit the node's role, in OnCreate mode.

load helpers

@test "a login node gets slurmd for its configuration, and no restart loop" {
  node::is_login
  touch "$FAKE/units/slurmd/stays_down"
  mkdir -p "$ULTRACLUSTER_ROOT/var/spool/slurmd/conf-cache"
  echo 'ClusterName=dev' >"$ULTRACLUSTER_ROOT/var/spool/slurmd/conf-cache/slurm.conf"
  run run_steps slurm
  assert::status 0
  assert::states slurm=installed
  assert::equal 0 "$(grep -c Restart= "$ULTRACLUSTER_ROOT/etc/systemd/system/slurmd.service.d/20-ultracluster-configless.conf")"
  forget_calls
  run run_steps slurm
  assert::states slurm=already
}

@test "several controllers are all named to slurmd" {
  sed -i 's/"SecondaryControllerIps": \[\]/"SecondaryControllerIps": ["10.1.0.12"]/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run run_steps slurm
  assert::equal "SLURMD_OPTIONS=--conf-server=10.1.0.10,10.1.0.12" "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/slurmd.env")"
}

@test "a compute node that slurmctld does not know yet is no failure" {
  touch "$FAKE/units/slurmd/stays_down"
  run run_steps slurm
  assert::status 0
  assert::contains "$output" "slurmd is enabled, and waits for 10.1.0.10"
}

@test "the database answers before slurmctld starts" {
  node::is_controller
  mkdir -p "$FAKE/units/slurmdbd"
  touch "$ULTRACLUSTER_ROOT/opt/slurm/etc/slurmdbd.conf"
  echo 3 >"$FAKE/sacctmgr_failures"
  PATIENCE=600 run run_steps slurm
  assert::status 0
  local -r order=$(grep -E '^(sacctmgr|systemctl start slurm)' "$FAKE/calls" | uniq | cut -d ' ' -f 1-3 | tr '\n' ';')
  assert::equal "systemctl start slurmdbd.service;sacctmgr --noheader --parsable2;systemctl start slurmctld.service;" "$order"
}

@test "a slurm.conf that the service has not written yet is waited for, and its absence named" {
  node::is_controller
  rm "$ULTRACLUSTER_ROOT/opt/slurm/etc/slurm.conf"
  run run_steps slurm
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED slurm: HyperPod has not written /opt/slurm/etc/slurm.conf"
  assert::never_called 'systemctl start slurmctld'
}

@test "a slurmctld that does not start is named" {
  node::is_controller
  touch "$FAKE/units/slurmctld/broken"
  run run_steps slurm
  assert::status 1
  assert::last_log_line "FAILED slurm: slurmctld did not start: see journalctl -u slurmctld"
}

@test "a unit with long drop-ins is read to its end" {
  {
    cat "$FAKE/units/slurmd/unit"
    for number in {1..9000}; do echo "Environment=VARIABLE_$number=value"; done
  } >"$FAKE/unit.new"
  mv "$FAKE/unit.new" "$FAKE/units/slurmd/unit"
  run run_steps slurm
  assert::status 0
}

@test "a unit that cannot be pointed to the controllers is refused" {
  echo 'ExecStart=/opt/slurm/sbin/slurmd -D' >"$FAKE/units/slurmd/unit"
  run run_steps slurm
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED slurm: slurmd.service of this image takes no SLURMD_OPTIONS"
}

@test "a slurmd that runs with an earlier controller is started again" {
  run_steps slurm
  mkdir -p "$ULTRACLUSTER_ROOT/proc/77"
  echo 77 >"$FAKE/units/slurmd/pid"
  printf 'slurmd\0-D\0--conf-server=10.1.0.9\0' >"$ULTRACLUSTER_ROOT/proc/77/cmdline"
  echo "echo slurmd --conf-server=10.1.0.10 >'$ULTRACLUSTER_ROOT/proc/77/cmdline'" >"$FAKE/units/slurmd/start"
  forget_calls
  run run_steps slurm
  assert::status 0
  assert::states slurm=installed
  assert::called "systemctl restart --no-block slurmd.service"
}

@test "a role without a Slurm daemon is skipped" {
  sed -i 's/"role": "compute"/"role": "system"/' "$SCRIPTS/cluster.json"
  run run_steps slurm
  assert::states slurm=skipped
}
