#!/usr/bin/env bats
# The last look: mounts, GPUs, EFA, Lustre over EFA, Slurm.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

scenario() {
  mkdir -p "$ULTRACLUSTER_ROOT"/{fsx,home,opt/amazon/efa/bin,opt/slurm/bin} "$FAKE"/{lnet,gpus}
  {
    echo '50 1 0:60 / /fsx rw shared:3 - lustre 10.1.0.9@tcp:/abcdefgh rw'
    echo '51 1 0:61 / /home rw shared:4 - nfs4 fs-4567:/fsx rw'
  } >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  node::efa_devices 32
  sed -i 's|"path": "/fsx", "dns|"efa": true, "path": "/fsx", "dns|' "$SCRIPTS/cluster.json"
  echo 8 >"$FAKE/lnet/efa"
  fi_info 32
  touch "$FAKE/units/slurmd/active"
  scontrol_says 'NodeName=ip-10-1-0-21 Arch=x86_64 State=IDLE+DYNAMIC_NORM ThreadsPerCore=2'
}

# fi_info COUNT: each interface with both fabrics of libfabric 2
fi_info() {
  local index
  for ((index = 0; index < $1; index++)); do
    printf 'provider: efa\n    fabric: efa\n    domain: rdmap%s-rdm\nprovider: efa\n    fabric: efa-direct\n    domain: rdmap%s-rdm\n' "$index" "$index"
  done >"$FAKE/fi_info"
  printf '#!/bin/bash\ncat "$FAKE/fi_info"\n[[ -s $FAKE/fi_info ]] || exit 61\n' >"$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info"
  chmod +x "$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info"
}

scontrol_says() {
  printf '#!/bin/bash\necho %q\n' "$1" >"$ULTRACLUSTER_ROOT/opt/slurm/bin/scontrol"
  chmod +x "$ULTRACLUSTER_ROOT/opt/slurm/bin/scontrol"
}

message() { tail -n 1 <(grep '"step": "proof"' "$REPORT") | sed 's/.*"message": "\([^"]*\)".*/\1/'; }

@test "all is there" {
  run run_steps proof
  assert::status 0
  assert::states proof=already
  assert::equal 'mounts=/fsx:lustre,/home:nfs4 gpus=8/8 efa=32/32 lustre_efa=8/8 slurmd=IDLE+DYNAMIC_NORM' "$(message)"
  [[ $output != *WARN* ]]
}

@test "a mount that is not there" {
  sed -i '/ \/home /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps proof
  assert::status 0
  assert::states proof=degraded
  assert::equal '/home is not mounted (mounts=/fsx:lustre gpus=8/8 efa=32/32 lustre_efa=8/8 slurmd=IDLE+DYNAMIC_NORM)' "$(message)"
}

# health_says CHECK: what the health check says of the same node, with the facts that its boot leaves
health_says() {
  printf '%s\n' NODE_ROLE=compute NODE_INSTANCE_TYPE=p5.48xlarge NODE_ACCELERATOR=nvidia NODE_ACCELERATORS=8 NODE_EFA_INTERFACES=32 >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node"
  rm -f "$ULTRACLUSTER_ROOT/run/ultracluster/health/nvidia-smi"
  on_node ULTRACLUSTER_HEALTH_TOOL_SECONDS=60 "$SCRIPTS/lib/run_check.sh" "$1" quick 300 || true
}

# required_proof: the step where the release has its components as required
required_proof() {
  on_node bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; RELEASE=([nvidia-driver.need]=required [efa-installer.need]=required); entry::main proof"
}

@test "fewer GPUs or EFA devices than the type has: degraded, and the health check agrees" {
  echo 7 >"$FAKE/gpus/count"
  rm -r "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap31"
  mkdir -p "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health"
  run required_proof
  assert::status 0
  assert::states proof=degraded
  assert::contains "$(message)" '7 of 8 GPUs answer (mounts='
  assert::contains "$(message)" 'gpus=7/8 efa=31/32'
  assert::equal degraded "$(sed -n 's/.*"run": "ended".*"state": "\([a-z]*\)".*/\1/p' "$REPORT")"
  assert::contains "$(health_says gpu_count)" '7 GPUs answer, cluster.json has 8'
  assert::contains "$(health_says efa)" '31 EFA devices of 32'
}

@test "without any GPU or any EFA device the node fails" {
  echo 'No devices were found' >"$FAKE/gpus/text"
  run required_proof
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" 'FAILED proof: no GPUs answer: nvidia-smi (status 0): No devices were found; p5.48xlarge has 8 (mounts='
  rm "$FAKE/gpus/text"
  rm -r "$ULTRACLUSTER_ROOT"/sys/class/infiniband/rdmap*
  run required_proof
  assert::status 1
  assert::contains "$(tail -n 1 "$LOG")" 'FAILED proof: no EFA devices are served by their driver; p5.48xlarge has 32 ('
}

@test "what cannot be counted is not known, and degrades" {
  mkdir -p "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health"
  echo 'Unable to determine the device handle for GPU0000:53:00.0: GPU is lost' >"$FAKE/gpus/text"
  echo 15 >"$FAKE/gpus/status"
  run required_proof
  assert::status 0
  assert::contains "$(message)" 'not known how many GPUs answer: nvidia-smi (status 15): Unable to determine'
  assert::contains "$(message)" 'gpus=unknown/8'
  assert::contains "$(health_says gpu_count)" '"result": "critical"'
}

@test "libfabric that offers fewer devices than the driver serves" {
  fi_info 31
  run run_steps proof
  assert::status 0
  assert::contains "$(message)" 'libfabric offers 31 of 32 EFA devices'
  rm "$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info" # as on EKS
  run run_steps proof
  assert::states proof=already
  assert::contains "$(message)" 'efa=32/32'
}

@test "Neuron devices are counted by their driver, wherever it shows them" {
  cluster_json "gpu.update(accelerator='neuron', accelerators=2)"
  mkdir -p "$ULTRACLUSTER_ROOT"/sys/devices/virtual/neuron_device/neuron0 "$ULTRACLUSTER_ROOT/dev"
  touch "$ULTRACLUSTER_ROOT"/dev/neuron{0,1,_ctl}
  run run_steps proof
  assert::contains "$(message)" 'neuron=2/2'
  rm "$ULTRACLUSTER_ROOT/dev/neuron1"
  run run_steps proof
  assert::contains "$(message)" '1 of 2 Neuron devices are served by their driver'
}

@test "Lustre over TCP where EFA was asked for, and a fabric that nothing goes over" {
  rm "$FAKE/lnet/efa"
  run run_steps proof
  assert::contains "$(message)" 'Lustre uses TCP, not EFA'
  echo 8 >"$FAKE/lnet/efa"
  echo 1 >"$FAKE/lnet/tcp"
  echo tcp >"$FAKE/lnet/uses"
  run run_steps proof
  assert::contains "$(message)" '8 EFA interfaces are bound, but Lustre uses TCP'
}

@test "a read-only file system proves nothing of its network" {
  echo 1 >"$FAKE/lnet/tcp"
  echo tcp >"$FAKE/lnet/uses"
  echo 1 >"$FAKE/dd_status"
  run run_steps proof
  assert::status 0
  assert::states proof=already
  # one that does not answer within its time does
  echo 124 >"$FAKE/dd_status"
  run run_steps proof
  assert::contains "$(message)" '8 EFA interfaces are bound, but Lustre uses TCP'
}

@test "what Slurm says of the node is told, and never ends it" {
  scontrol_says 'NodeName=ip-10-1-0-21 State=DOWN*+NOT_RESPONDING'
  run run_steps proof
  assert::status 0
  assert::contains "$output" 'WARN  proof: slurmctld has this node as DOWN*+NOT_RESPONDING'
  scontrol_says ''
  run run_steps proof
  assert::contains "$(message)" 'slurmd=unknown'
  rm "$FAKE/units/slurmd/active"
  run run_steps proof
  assert::equal 'mounts=/fsx:lustre,/home:nfs4 gpus=8/8 efa=32/32 lustre_efa=8/8' "$(message)"
}

@test "a controller has mounts to prove" {
  node::is_controller
  run run_steps proof
  assert::status 0
  assert::equal 'mounts=/fsx:lustre,/home:nfs4' "$(message)"
}
