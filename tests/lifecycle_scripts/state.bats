#!/usr/bin/env bats
# Where jobs can ask whether a node has all of its release.
# shellcheck disable=SC2016 # fakes expand when they run

load helpers

feature() { on_node ULTRACLUSTER_FEATURE_PAUSE=0.02 ULTRACLUSTER_FEATURE_ATTEMPTS=5 bash "$SCRIPTS/files/slurm_feature.sh"; }

# slurmctld in a file: lines of `scontrol show node`, which `scontrol update` changes.
scenario() {
  mkdir -p "$ULTRACLUSTER_ROOT"/{etc/ultracluster,proc/sys/kernel}
  echo ip-10-1-0-21.us-east-1.compute.internal >"$ULTRACLUSTER_ROOT/proc/sys/kernel/hostname"
  cat >"$SANDBOX/bin/scontrol" <<'FAKE'
#!/bin/bash
set -euo pipefail
echo "scontrol $*" >>"$FAKE/calls"
[[ -e $FAKE/nodes ]] || exit 1
case $1:$# in
  update:3)
    line=$(grep "^$2 " "$FAKE/nodes")
    if [[ $3 == AvailableFeatures=* ]]; then
      new=$(sed "s/AvailableFeatures=[^ ]*/$3/" <<<"$line")
      [[ -e $FAKE/plugin ]] || new=$(sed "s/ActiveFeatures=[^ ]*/Active${3#Available}/" <<<"$new")
    else
      new=$(sed "s/ActiveFeatures=[^ ]*/$3/" <<<"$line")
    fi
    printf '%s\n' "$(grep -v "^$2 " "$FAKE/nodes")" "$new" >"$FAKE/nodes.new"
    mv "$FAKE/nodes.new" "$FAKE/nodes"
    ;;
  --oneliner:4) grep "^NodeName=$4 " "$FAKE/nodes" ;;
  --oneliner:3) cat "$FAKE/nodes" ;;
esac
FAKE
  chmod +x "$SANDBOX/bin/scontrol"
  echo ready >"$ULTRACLUSTER_ROOT/etc/ultracluster/state"
  node ip-10-1-0-21 gpu,p5
  node ip-10-1-0-22 gpu,p5
}

# node NAME FEATURES [HOST ADDRESS]
node() {
  echo "NodeName=$1 Arch=x86_64 CoresPerSocket=48 AvailableFeatures=$2 ActiveFeatures=$2 Gres=gpu:8 NodeAddr=${4:-$1} NodeHostName=${3:-$1} State=IDLE" >>"$FAKE/nodes"
}

# features NAME: available and active
features() { sed -n "s/^NodeName=$1 .* AvailableFeatures=\([^ ]*\) ActiveFeatures=\([^ ]*\) .*/\1 \2/p" "$FAKE/nodes"; }

@test "Slurm: the feature is added to those that the node has, and follows the state" {
  run feature
  assert::status 0
  assert::equal "gpu,p5,ultracluster_ready gpu,p5,ultracluster_ready" "$(features ip-10-1-0-21)"
  assert::equal "gpu,p5 gpu,p5" "$(features ip-10-1-0-22)"
  forget_calls
  run feature
  assert::never_called 'scontrol update'
  echo degraded >"$ULTRACLUSTER_ROOT/etc/ultracluster/state"
  run feature
  assert::equal "gpu,p5,ultracluster_degraded gpu,p5,ultracluster_degraded" "$(features ip-10-1-0-21)"
}

@test "Slurm: a node without features, one with another name, and a plugin that activates nothing" {
  rm "$FAKE/nodes"
  touch "$FAKE/plugin"
  node head '(null)'
  node gpu-1 '(null)' ip-10-1-0-21 10.1.0.21
  run feature
  assert::status 0
  assert::equal "ultracluster_ready ultracluster_ready" "$(features gpu-1)"
  assert::equal "(null) (null)" "$(features head)"
  rm "$FAKE/nodes"
  node gpu-1 a other 10.1.0.21
  run feature
  assert::equal "a,ultracluster_ready a,ultracluster_ready" "$(features gpu-1)"
}

@test "Slurm: a node that is not known yet is waited for, and it is no failure when it never is" {
  mv "$FAKE/nodes" "$FAKE/later"
  run feature
  assert::status 0
  assert::contains "$output" "Slurm was not told that this node is ready"
  (sleep 0.1 && mv "$FAKE/later" "$FAKE/nodes") 3>&- &
  run on_node ULTRACLUSTER_FEATURE_PAUSE=0.05 ULTRACLUSTER_FEATURE_ATTEMPTS=10000 bash "$SCRIPTS/files/slurm_feature.sh"
  assert::contains "$(features ip-10-1-0-21)" ultracluster_ready
}

@test "Slurm: an entry leaves the state and the unit, a second run changes nothing" {
  only_steps limits scratch
  rm "$ULTRACLUSTER_ROOT/etc/ultracluster/state"
  run on_init_complete
  assert::status 0
  assert::equal ready "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/state")"
  [[ -e $FAKE/units/ultracluster-feature/enabled && -x $ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-feature ]]
  assert::called "systemctl restart --no-block ultracluster-feature.service"
  forget_calls
  run on_init_complete
  assert::no_changes
  echo 'scratch::detect() { step::fail "no"; }' >>"$SCRIPTS/steps/scratch.sh"
  run on_init_complete
  assert::status 0
  assert::equal degraded "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/state")"
  assert::called "systemctl restart --no-block ultracluster-feature.service"
}

@test "Slurm: login nodes and controllers take no jobs and are not marked; a unit that does not start is no failure" {
  only_steps limits
  rm "$ULTRACLUSTER_ROOT/etc/ultracluster/state"
  node::is_login
  run on_init_complete
  assert::status 0
  [[ ! -e $ULTRACLUSTER_ROOT/etc/ultracluster/state ]]
  node::renew
  mkdir -p "$FAKE/units/ultracluster-feature"
  touch "$FAKE/units/ultracluster-feature/broken"
  run on_init_complete
  assert::status 0
}

@test "EKS: a label that nodeadm gives the node" {
  only_steps limits
  rm -r "$ULTRACLUSTER_ROOT/opt/ml"
  mkdir -p "$ULTRACLUSTER_ROOT"/{usr/bin,sys/devices/virtual/dmi/id}
  touch "$ULTRACLUSTER_ROOT/usr/bin/nodeadm"
  echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  run on_node "$SCRIPTS/eks_user_data.sh"
  assert::status 0
  assert::equal "NodeConfig --node-labels=ultracluster/state=ready" "$("$REAL/python3" -IS -c '
import json, sys
config = json.load(open(sys.argv[1]))
print(config["kind"], *config["spec"]["kubelet"]["flags"])' "$ULTRACLUSTER_ROOT/etc/eks/nodeadm.d/99-ultracluster.json")"
}

@test "ParallelCluster: what the first entry was without is told by the second, and the node is ready only after it" {
  local -r ready=$ULTRACLUSTER_ROOT/run/ultracluster/ready
  rm -r "$ULTRACLUSTER_ROOT/opt/ml"
  mkdir -p "$ULTRACLUSTER_ROOT"/{etc/parallelcluster,sys/devices/virtual/dmi/id}
  echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  echo cfn_node_type=ComputeFleet >"$ULTRACLUSTER_ROOT/etc/parallelcluster/cfnconfig"
  echo 'scratch::detect() { step::component nccl kept 2.27.5 2.30.7 "kept-older: the release has 2.30.7"; step::fail "no disks"; }' \
    >>"$SCRIPTS/steps/scratch.sh"
  run on_node "$SCRIPTS/parallelcluster_on_node_start.sh"
  assert::status 0
  [[ ! -e $ready ]]
  run on_node "$SCRIPTS/parallelcluster_on_node_configured.sh"
  assert::status 0
  assert::last_log_line "DEGRADED scratch: scratch: no /scratch on local disks (no disks); keeps older nccl 2.27.5 (the release has 2.30.7)"
  assert::contains "$(cat "$ready")" '"degraded": ["scratch"]'
  assert::equal degraded "$(cat "$ULTRACLUSTER_ROOT/etc/ultracluster/state")"
  # Alone, at a later run, it speaks of itself.
  run on_node "$SCRIPTS/parallelcluster_on_node_configured.sh"
  assert::contains "$(tail -n 1 "$LOG")" "READY after"
}
