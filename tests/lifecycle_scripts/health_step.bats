#!/usr/bin/env bats
# The step that lays the health loop, and the parts of Slurm's prolog, epilog and health check that call it.

load helpers

REAL_COMMANDS+=(setsid)

readonly HOME_OF_LOOP=/opt/ultracluster/health

asked() {
  cluster_json "cluster['health'] = dict(mode='${1:-dry-run}', orchestrator='hyperpod-slurm', node_recovery='automatic')"
}

@test "a node gets the loop, its settings and the programs that Slurm's settings name" {
  asked
  run run_steps health
  assert::status 0
  assert::states health=installed
  local path
  for path in /opt/ultracluster/{prolog,epilog} /opt/ultracluster/{prolog,epilog}.d/10_ultracluster_health $HOME_OF_LOOP/{program,lib/run_check.sh}; do
    [[ -x $ULTRACLUSTER_ROOT$path ]] || { echo "$path cannot be run" && return 1; }
  done
  for path in loop/{main,decide,known,slurm,checks,place,loop}.py health/faults.json lib/node.sh; do
    [[ -e $ULTRACLUSTER_ROOT$HOME_OF_LOOP/$path ]] || { echo "no $path" && return 1; }
  done
  assert::contains "$(cat "$ULTRACLUSTER_ROOT$HOME_OF_LOOP/settings.json")" '"mode": "dry-run"'
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node")" NODE_INSTANCE_TYPE=p5.48xlarge
  assert::called 'systemctl restart ultracluster-health.service'
  : >"$FAKE/changes"
  run run_steps health
  assert::states health=already
  # checks keep counters of their own
  assert::equal '' "$(grep -v '/health/[a-z_]*\.state$' "$FAKE/changes")"
}

@test "new settings are taken up, and off takes the loop away" {
  asked
  run run_steps health
  asked enforce
  run run_steps health
  assert::states health=installed
  assert::contains "$(cat "$ULTRACLUSTER_ROOT$HOME_OF_LOOP/settings.json")" '"mode": "enforce"'
  cluster_json "del cluster['health']"
  run run_steps health
  assert::status 0
  [[ ! -e $ULTRACLUSTER_ROOT$HOME_OF_LOOP/loop && -x $ULTRACLUSTER_ROOT/opt/ultracluster/prolog ]]
  # what Slurm's settings may still name finds nothing to run
  run on_node "$ULTRACLUSTER_ROOT/opt/ultracluster/prolog"
  assert::status 0
  run run_steps health
  assert::states health=skipped
}

@test "where jobs do not run there is nothing to do" {
  asked
  cluster_json "gpu['role'] = 'login'"
  run run_steps health
  assert::states health=skipped
}

@test "on ParallelCluster the head node lays the parts into the folders that all nodes share" {
  # shellcheck disable=SC2016 # expanded by the shell that it starts
  run on_node bash -c 'source "$1/lib/log.sh"; source "$1/lib/files.sh"; source "$1/steps/health.sh"; NODE_ROLE=controller NODE_FAMILY=parallelcluster ULTRACLUSTER_HOME=$1 health::wanted' - "$SCRIPTS"
  assert::equal $'health_loop/prolog.sh /opt/slurm/etc/scripts/prolog.d/10_ultracluster_health 0755\nhealth_loop/epilog.sh /opt/slurm/etc/scripts/epilog.d/10_ultracluster_health 0755' "$output"
}

@test "health of cluster.json that makes no sense is refused before anything is laid" {
  cluster_json "cluster['health'] = dict(mode='maybe')"
  run run_steps health
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" 'not an object with mode dry-run or enforce'
}

# A loop that ends as the test says
loop_ends() {
  mkdir -p "$ULTRACLUSTER_ROOT$HOME_OF_LOOP/loop"
  printf 'import sys, time\n%s\n' "$1" >"$ULTRACLUSTER_ROOT$HOME_OF_LOOP/loop/main.py"
}

@test "a prolog sends its job away only where the loop says so" {
  local -r prolog=$SCRIPTS/health_loop/prolog.sh
  run -0 on_node "$prolog"
  loop_ends 'sys.exit(75)'
  run -1 on_node "$prolog"
  local mistake
  for mistake in 'sys.exit(1)' 'syntax error' 'raise SystemExit(2)' 'import nothing_of_that_name' 'sys.exit(0)'; do
    loop_ends "$mistake"
    run -0 on_node "$prolog"
  done
}

@test "an epilog and the health check program never fail" {
  local script mistake
  for script in epilog program; do
    for mistake in 'sys.exit(75)' 'sys.exit(1)' 'syntax error'; do
      loop_ends "$mistake"
      run -0 on_node "$SCRIPTS/health_loop/$script.sh"
    done
  done
  mkdir -p "$ULTRACLUSTER_ROOT/opt/ultracluster/epilog.d"
  printf '#!/usr/bin/env bash\nexit 3\n' >"$ULTRACLUSTER_ROOT/opt/ultracluster/epilog.d/10_first"
  printf '#!/usr/bin/env bash\necho second\n' >"$ULTRACLUSTER_ROOT/opt/ultracluster/epilog.d/20_second"
  chmod +x "$ULTRACLUSTER_ROOT"/opt/ultracluster/epilog.d/*
  cp "$SCRIPTS/files/slurm_epilog.sh" "$ULTRACLUSTER_ROOT/opt/ultracluster/epilog"
  run -0 on_node "$ULTRACLUSTER_ROOT/opt/ultracluster/epilog"
  assert::equal second "$output"
}
