#!/usr/bin/env bats
# The step that lays what brings settings into slurm.conf; test_slurm_conf.py has what that does with a real slurmctld.

load helpers

readonly UNIT=ultracluster-slurm-conf
readonly SLURM='{"settings": [{"name": "KillWait", "value": "60"}], "default_partition": "gpu"}'

controller() {
  node::is_controller
  mkdir -p "$ULTRACLUSTER_ROOT/opt/slurm/etc"
  cluster_json "cluster['slurm'] = json.loads('$SLURM')"
}

# answers RESULT WHY: what the service comes to
answers() {
  mkdir -p "$FAKE/units/$UNIT"
  cat >"$FAKE/units/$UNIT/start" <<EOT
mkdir -p "$ULTRACLUSTER_ROOT/var/lib/ultracluster/slurm"
echo '{"result": "$1", "why": "$2"}' >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/slurm/state.json"
EOT
}

@test "the controller gets the settings, a timer, and programs for its nodes" {
  controller
  answers applied ''
  run run_steps slurm_conf
  assert::status 0
  assert::states slurm_conf=installed
  assert::equal "$SLURM" "$(cat "$ULTRACLUSTER_ROOT/opt/ultracluster/slurm/settings.json")"
  [[ -x $ULTRACLUSTER_ROOT/opt/slurm/etc/ultracluster_prolog && -x $ULTRACLUSTER_ROOT/opt/slurm/etc/ultracluster_epilog ]]
  [[ -e $ULTRACLUSTER_ROOT/opt/ultracluster/slurm/slurm_try.py ]]
  assert::called "systemctl start $UNIT.timer"
  assert::contains "$output" "slurmctld has the settings"
  : >"$FAKE/changes"
  run run_steps slurm_conf
  assert::states slurm_conf=already
}

@test "nodes without slurm.conf, and clusters without settings, have nothing to do" {
  cluster_json "cluster['slurm'] = json.loads('$SLURM')"
  run run_steps slurm_conf
  assert::states slurm_conf=skipped
  node::is_controller
  cluster_json "del cluster['slurm']"
  run run_steps slurm_conf
  assert::states slurm_conf=skipped
}

@test "a controller whose slurmctld refuses them joins without them and says so" {
  controller
  answers refused "fatal: PrologFlags invalid"
  run run_steps slurm_conf
  assert::status 0
  assert::states slurm_conf=degraded
  assert::contains "$(tail -n 1 "$LOG")" "slurmctld runs without our settings: fatal: PrologFlags invalid"
}

@test "a controller whose Slurm comes up later is not degraded" {
  controller
  answers waits "slurm.conf is not there yet"
  run run_steps slurm_conf
  assert::status 0
  assert::states slurm_conf=installed
  assert::contains "$output" "the timer goes on: slurm.conf is not there yet"
}

@test "settings that are no settings stop before anything is written" {
  controller
  cluster_json "cluster['slurm']['settings'][0]['value'] = 'a\nb'"
  run run_steps slurm_conf
  [[ $status -ne 0 ]]
  assert::contains "$output" "slurm.settings is"
  [[ ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/slurm/settings.json ]]
}

@test "nodes run what is there before a job, and nothing where nothing is" {
  local -r folder=$SANDBOX/prolog
  mkdir -p "$folder"
  sed "s,/opt/ultracluster/,$folder/,g" "$REPOSITORY/lifecycle_scripts/files/slurm_conf_prolog.sh" >"$folder/stub"
  run sh "$folder/stub"
  assert::status 0
  printf '#!/bin/sh\nexit 7\n' >"$folder/prolog"
  chmod +x "$folder/prolog"
  run sh "$folder/stub"
  assert::status 7
}
