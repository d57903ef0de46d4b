#!/usr/bin/env bats
# The step that has ParallelCluster's head node keep Slurm's topology; test_topology_update.py has what its program writes.

load helpers

readonly TREE="cluster.update(region='eu-north-1', topology='tree')"

@test "the head node gets the program, its configuration and a timer, once" {
  node::is_controller
  cluster_json "$TREE"
  run run_steps topology
  assert::status 0
  assert::states topology=installed
  assert::equal $'REGION=eu-north-1\nCLUSTER=dev' "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/topology")"
  assert::equal "topology.py topology_slurm.py topology_update.py" "$(cd "$ULTRACLUSTER_ROOT/opt/ultracluster/topology" && echo *)"
  assert::called 'systemctl enable ultracluster-topology.timer'
  assert::called 'systemctl restart ultracluster-topology.timer'
  : >"$FAKE/changes"
  run run_steps topology
  assert::states topology=already
  assert::equal '' "$(cat "$FAKE/changes")"
}

@test "no other node does, and no cluster that does not ask" {
  cluster_json "$TREE"
  run run_steps topology
  assert::states topology=skipped
  node::is_controller
  cluster_json "del cluster['topology']"
  run run_steps topology
  assert::states topology=skipped
}

@test "what is no longer asked for is taken away with our file, and only with ours" {
  local -r file=$ULTRACLUSTER_ROOT/opt/slurm/etc/topology.yaml
  # shellcheck disable=SC2016 # it expands when it runs
  printf '#!%s\necho "scontrol $*" >>"$FAKE/calls"\n' "$REAL/bash" >"$SANDBOX/bin/scontrol"
  chmod +x "$SANDBOX/bin/scontrol"
  node::is_controller
  cluster_json "$TREE"
  run run_steps topology
  mkdir -p "${file%/*}"
  echo '# Written by Ultracluster when nodes move.' >"$file"
  cluster_json "del cluster['topology']"
  run run_steps topology
  assert::status 0
  [[ ! -e $file && ! -e $ULTRACLUSTER_ROOT/opt/ultracluster/topology/topology.py ]]
  [[ ! -e $ULTRACLUSTER_ROOT/etc/systemd/system/ultracluster-topology.timer ]]
  assert::called 'scontrol reconfigure'
  run run_steps topology
  assert::states topology=skipped
  cluster_json "$TREE"
  run run_steps topology
  echo '- topology: mine' >"$file"
  cluster_json "del cluster['topology']"
  run run_steps topology
  [[ -e $file ]]
}

@test "without the Region the node joins, and says what it lacks" {
  node::is_controller
  cluster_json "$TREE; del cluster['region']"
  run run_steps topology
  assert::status 0
  assert::contains "$(tail -n 1 "$LOG")" "DEGRADED topology: topology: Slurm places jobs without regard to the network"
}
