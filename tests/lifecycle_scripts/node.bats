#!/usr/bin/env bats
# Who the node is: resource_config.json, cluster.json and the node's own addresses.
# shellcheck disable=SC2016 # what `library` is given is expanded on the node

load helpers

who_am_i() {
  library node 'node::load || { echo "$NODE_ERROR"; exit 1; }
    echo "$NODE_GROUP $NODE_ROLE $NODE_INSTANCE_TYPE $NODE_ADDRESS $NODE_LOCAL_NVME_DISKS $CLUSTER_CONTROLLERS"'
}

@test "a value cannot bring another fact with it" {
  cluster_json() { "$PYTHON" -IS -c 'import json, sys; cluster = json.load(open(sys.argv[1])); exec(sys.argv[2]); json.dump(cluster, open(sys.argv[1], "w"))' "$SCRIPTS/cluster.json" "$1"; }
  cluster_json 'cluster["cluster"] = "dev\nCLUSTER_MIRROR=s3://theirs"'
  run on_init_complete
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: $SCRIPTS/cluster.json: 'dev\\nCLUSTER_MIRROR=s3://theirs' is no value, it has several lines"
}

@test "values of another shape are told, and nothing is waited for" {
  cp "$SCRIPTS/cluster.json" "$BATS_TEST_TMPDIR/good.json"
  local change words
  while IFS='|' read -r change words; do
    "$PYTHON" -IS -c 'import json, sys; cluster = json.load(open(sys.argv[1])); exec(sys.argv[3]); json.dump(cluster, open(sys.argv[2], "w"))' \
      "$BATS_TEST_TMPDIR/good.json" "$SCRIPTS/cluster.json" "$change"
    run on_init_complete
    assert::status 1
    assert::contains "$(tail -n 1 "$LOG")" "$words"
  done <<'CASES'
cluster["components"] = "$(id)"|components is '$(id)', not a list of names
cluster["components"] = ["a b"]|components is ['a b'], not a list of names
cluster["environment"] = ["x"]|environment is ['x'], not a text
cluster["mounts"] = [1]|has another shape than its scheme
cluster["metadata"] = True|has another shape than its scheme
CASES
}

@test "a node finds its group by its address, and drops HyperPod's prefix of the type" {
  run --separate-stderr who_am_i
  assert::equal "gpu compute p5.48xlarge 10.1.0.21 8 10.1.0.10" "$output"
}

@test "further addresses, of EFA cards and containers, do not confuse it" {
  echo 10.1.0.22 10.1.7.1 172.17.0.1 fe80::1 >"$FAKE/addresses"
  run --separate-stderr who_am_i
  assert::equal "gpu compute p5.48xlarge 10.1.0.22 8 10.1.0.10" "$output"
}

@test "without a default route any address that is known will do" {
  echo - 172.17.0.1 10.1.0.11 >"$FAKE/addresses"
  run --separate-stderr who_am_i
  assert::equal "entrance login m5.xlarge 10.1.0.11 0 10.1.0.10" "$output"
}

@test "the address that faces the cluster wins over others that are known" {
  echo 10.1.0.10 10.1.0.21 >"$FAKE/addresses"
  run --separate-stderr who_am_i
  assert::equal "head controller m5.2xlarge 10.1.0.10 0 10.1.0.10" "$output"
}

@test "several known addresses and none that faces the cluster are refused" {
  echo - 10.1.0.21 10.1.0.22 >"$FAKE/addresses"
  run run_steps
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: the addresses of this node belong to several instances"
}

@test "addresses of the service's account are never compared" {
  echo 10.1.0.99 >"$FAKE/addresses"
  run run_steps
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: no address of this node (10.1.0.99) is in "
  assert::no_changes
}

@test "a node that is entered late is waited for" {
  echo 10.1.0.30 >"$FAKE/addresses"
  (sleep 0.2 && sed -i 's/10.1.0.21/10.1.0.30/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json") 3>&- &
  PATIENCE=600 run run_steps
  assert::status 0
  assert::contains "$output" "compute node of group 'gpu'"
}

@test "a group that cluster.json does not know is refused at once" {
  sed -i 's/"Name": "gpu"/"Name": "gpu-2"/' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  PATIENCE=600 run run_steps
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: instance group 'gpu-2' is not in $SCRIPTS/cluster.json, which knows entrance, gpu, head"
}

@test "a corrupt cluster.json is refused at once" {
  echo '{"schema": 1, ' >"$SCRIPTS/cluster.json"
  PATIENCE=600 run run_steps
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "FAILED node: cannot read $SCRIPTS/cluster.json: Expecting property name"
}

@test "cluster.json that is not there, of another schema, or with wrong values is refused" {
  local change message
  while IFS='|' read -r change message; do
    node::cluster_json
    sed -i "$change" "$SCRIPTS/cluster.json"
    run run_steps
    assert::status 1
    assert::contains "$(tail -n 1 "$LOG")" "$message"
  done <<'CASES'
s/"schema": 1/"schema": 2/|has schema 2, these scripts read schema 1
s/"role": "compute"/"role": "worker"/|group 'gpu' has role 'worker', not one of controller, login, compute, system
s/"node_groups"/"groups"/|has no usable node_groups
s/"local_nvme_disks": 8/"local_nvme_disks": "8"/|local_nvme_disks of group 'gpu' is '8', not a number
s/abcdefgh/far too long/|mounts.lustre.mount_name is 'far too long'
s#"path": "/fsx"#"path": "/fsx /etc"#|mounts.lustre.path is '/fsx /etc'
CASES
  rm "$SCRIPTS/cluster.json"
  run run_steps
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" "No such file or directory"
}

@test "without SlurmConfig the controllers are the groups of that role" {
  sed -i 's/"SlurmConfig": {[^}]*}, *//; s/"SlurmConfig"[^}]*},//' "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  run --separate-stderr who_am_i
  assert::equal "gpu compute p5.48xlarge 10.1.0.21 8 10.1.0.10" "$output"
}
