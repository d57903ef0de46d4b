#!/usr/bin/env bats
# The step that keeps accounts of teams and ends of leases, on the node where root administers Slurm.

load helpers

readonly STATE="cluster.update(region='eu-north-1', state_uri='s3://bucket/dev/state')"

scenario() {
  node::is_controller
  cluster_json "$STATE"
  mkdir -p "$ULTRACLUSTER_ROOT/usr/local/sbin"
  # shellcheck disable=SC2016 # it expands when it runs
  printf '#!/bin/bash\necho "ultracluster-state $*" >>"$FAKE/calls"\n[[ $1 != status ]] || printf "teams: 2 teams\\nlease: no leases\\n"\n' \
    >"$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-state"
}

@test "the controller gets both programs and a timer, once" {
  run run_steps slurm_admin
  assert::status 0
  assert::states slurm_admin=installed
  [[ -x $ULTRACLUSTER_ROOT/opt/ultracluster/state.d/40_teams && -x $ULTRACLUSTER_ROOT/opt/ultracluster/state.d/41_lease ]]
  assert::equal "lease_end_decision.py lease_end_times.py slurm_accounts_difference.py" "$(cd "$ULTRACLUSTER_ROOT/opt/ultracluster/teams" && echo *)"
  assert::called 'systemctl start ultracluster-lease-end.timer'
  assert::called 'ultracluster-state teams lease'
  forget_calls
  run run_steps slurm_admin
  assert::states slurm_admin=already
  assert::no_changes
}

@test "other nodes do not get them" {
  echo 10.1.0.21 >"$FAKE/addresses"
  run run_steps slurm_admin
  assert::states slurm_admin=skipped
}

@test "on AWS PCS a login node has them, elsewhere it has not" {
  node::is_login
  cluster_json "$STATE; cluster['orchestrator'] = 'parallelcluster'"
  run run_steps slurm_admin
  assert::states slurm_admin=skipped
  cluster_json "cluster['orchestrator'] = 'pcs'"
  run run_steps slurm_admin
  assert::states slurm_admin=installed
}

@test "a cluster without documents: nothing to do" {
  cluster_json 'del cluster["state_uri"]'
  run run_steps slurm_admin
  assert::states slurm_admin=skipped
}

@test "killed at any change, the next run completes it" {
  kill_everywhere slurm_admin 2
}
