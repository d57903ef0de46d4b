#!/usr/bin/env bats
# The last look: mounts, EFA, Lustre over EFA, Slurm.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

scenario() {
  local index
  mkdir -p "$ULTRACLUSTER_ROOT"/{fsx,home,opt/amazon/efa/bin,opt/slurm/bin,sys/bus/pci/drivers/efa} "$FAKE/lnet"
  {
    echo '50 1 0:60 / /fsx rw shared:3 - lustre 10.1.0.9@tcp:/abcdefgh rw'
    echo '51 1 0:61 / /home rw shared:4 - nfs4 fs-4567:/fsx rw'
  } >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  for ((index = 0; index < 32; index++)); do
    mkdir -p "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap$index/device"
    ln -s "$ULTRACLUSTER_ROOT/sys/bus/pci/drivers/efa" "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap$index/device/driver"
  done
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
  assert::equal 'mounts=/fsx:lustre,/home:nfs4 efa=32/32 lustre_efa=8/8 slurmd=IDLE+DYNAMIC_NORM' "$(message)"
  [[ $output != *WARN* ]]
}

@test "a mount that is not there" {
  sed -i '/ \/home /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps proof
  assert::status 0
  assert::states proof=degraded
  assert::equal '/home is not mounted (mounts=/fsx:lustre efa=32/32 lustre_efa=8/8 slurmd=IDLE+DYNAMIC_NORM)' "$(message)"
}

@test "no EFA at all is a lack, another number a warning" {
  fi_info 31
  run run_steps proof
  assert::status 0
  assert::contains "$output" 'WARN  proof: 31 EFA interfaces are usable, p5.48xlarge should have 32'
  fi_info 0
  run run_steps proof
  assert::contains "$(message)" 'no EFA interface is usable, 32 should be'
}

@test "a driver that shows no device at all is a lack, and said like one" {
  rm -r "$ULTRACLUSTER_ROOT/sys/class/infiniband"
  fi_info 0
  run run_steps proof
  assert::states proof=degraded
  assert::contains "$(message)" 'no EFA interface is usable, 32 should be'
}

@test "without fi_info the driver's devices count, as on EKS" {
  rm "$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info"
  run run_steps proof
  assert::status 0
  assert::contains "$(message)" 'efa=32/32'
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
  assert::equal 'mounts=/fsx:lustre,/home:nfs4 efa=32/32 lustre_efa=8/8' "$(message)"
}

@test "a controller has mounts to prove" {
  node::is_controller
  run run_steps proof
  assert::status 0
  assert::equal 'mounts=/fsx:lustre,/home:nfs4' "$(message)"
}
