#!/usr/bin/env bats
# EFA on the host: verify/fabric.sh with every number of devices, and with what stands on them.

load helpers

scenario() {
  efa::fresh p5.48xlarge 32
}

# A node of TYPE with COUNT devices as its image shows them, and all else in order.
efa::fresh() {
  local -r made=$BATS_FILE_TMPDIR/efa-$2
  [[ -e $made ]] || { ULTRACLUSTER_ROOT=$made.new efa::make "$2" && mv "$made.new" "$made"; }
  rm -rf "${ULTRACLUSTER_ROOT:?}"/{sys,dev}
  cp -a "$made/." "$ULTRACLUSTER_ROOT"
  echo "$1" >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  [[ ! -e $SCRIPTS/cluster.json ]] || of_type "$1"
  fi_info_shows efa-direct "$2"
}

# efa::make COUNT: what is the same on a node of any type; made once for all tests
efa::make() {
  local index
  mkdir -p "$ULTRACLUSTER_ROOT"/{dev/infiniband,proc/self,sys/class/infiniband,sys/bus/pci/drivers/{efa,mlx5_core}} \
    "$ULTRACLUSTER_ROOT"/sys/module/{efa,ib_uverbs,ib_core} "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id"
  echo 3.3.1 >"$ULTRACLUSTER_ROOT/sys/module/efa/version"
  echo 'Max locked memory         unlimited            unlimited            bytes' >"$ULTRACLUSTER_ROOT/proc/self/limits"
  for ((index = 0; index < $1; index++)); do efa::device "rdmap$((16 + index))s0"; done
}

# of_type TYPE: what cluster.json and resource_config.json say of this node
of_type() {
  local -r made=$BATS_FILE_TMPDIR/of-$1 resources=$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json
  if [[ ! -e $made ]]; then
    node::cluster_json
    node::resource_config
    node::type "$1"
    mkdir "$made"
    cp "$SCRIPTS/cluster.json" "$resources" "$made"
  fi
  cp "$made/cluster.json" "$SCRIPTS"
  cp "$made/resource_config.json" "$resources"
}

# efa::device NAME [DRIVER]
efa::device() {
  local -r folder=$ULTRACLUSTER_ROOT/sys/class/infiniband/$1
  mkdir -p "$folder/device" "$folder/ports/1/hw_counters"
  ln -s "../../../../bus/pci/drivers/${2:-efa}" "$folder/device/driver"
  echo '100 Gb/sec (4X EDR)' >"$folder/ports/1/rate"
}

# fi_info_shows FABRIC COUNT: what libfabric 2 prints, each interface with two fabrics; 1.x, one and another name
fi_info_shows() {
  local -r made=$BATS_FILE_TMPDIR/fi_info-$1-$2
  local index
  [[ -e $made ]] || for ((index = 0; index < $2; index++)); do
    fi_info_entry "$1" "rdmap$((16 + index))s0-rdm"
    [[ $1 != efa-direct ]] || fi_info_entry efa "rdmap$((16 + index))s0-rdm"
  done >"$made"
  cp "$made" "$FAKE/fi_info"
  command_on_node fi_info "echo \"fi_info \$*\" >>\"\$FAKE/calls\"; cat \"\$FAKE/fi_info\""
}

fi_info_entry() {
  printf 'provider: %s\n    fabric: %s\n    domain: %s\n    version: 207.0\n    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n' "${3:-efa}" "$1" "$2"
}

# command_on_node NAME CODE: a fake
command_on_node() {
  rm -f "$SANDBOX/bin/$1"
  printf '#!/bin/bash\n%s\n' "$2" >"$SANDBOX/bin/$1"
  chmod +x "$SANDBOX/bin/$1"
}

fabric() {
  on_node ULTRACLUSTER_EFA_PAUSE=0.01 "$SCRIPTS/verify/fabric.sh" "$@"
}

# What cluster.json and resource_config.json say of this node is put aside: its firmware names the type.
without_cluster() {
  rm -f "$SCRIPTS/cluster.json" "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
}

assert::last() { assert::equal "$1" "$(tail -n 1 <<<"$output")"; }

@test "a node in order passes" {
  run fabric devices modules memlock libfabric gdrcopy
  assert::status 0
  assert::contains "$output" 'pass        devices       32 EFA devices at 100 Gb/sec, as expected'
  assert::contains "$output" 'pass        modules       efa 3.3.1, ib_uverbs, ib_core'
  assert::contains "$output" 'pass        libfabric     provider efa on 32 domains'
  assert::last 'PASS: 4 checks passed'
  assert::called 'fi_info -p efa -t FI_EP_RDM'
}

@test "JSON for a machine, on one line" {
  run fabric --json devices
  assert::status 0
  assert::equal 1 "${#lines[@]}"
  run "$REAL/python3" -IS -c 'import json, sys; d = json.loads(sys.argv[1]); print(d["verdict"], d["type"], d["checks"][0]["outcome"], bool(d["host"]))' "$output"
  assert::equal 'pass p5.48xlarge pass True' "$output"
}

@test "types with one device too few, and the right number" {
  local type count
  while read -r type count; do
    efa::fresh "$type" "$((count - 1))"
    run fabric devices
    assert::status 1
    assert::last "FAIL: devices: $((count - 1)) EFA devices$( ((count == 1)) || echo ' at 100 Gb/sec'), expected $count"
    efa::device rdmap200s0
    run fabric devices
    assert::status 0
  done <<'TYPES'
p4d.24xlarge 4
p5.48xlarge 32
p5.4xlarge 1
p6-b300.48xlarge 16
TYPES
}

@test "one device too many is no pass either" {
  efa::device rdmap99s0
  run fabric devices
  assert::status 1
  assert::last 'FAIL: devices: 33 EFA devices at 100 Gb/sec, expected 32'
}

@test "B200: ten entries of which two are not EFA" {
  efa::fresh p6-b200.48xlarge 8
  efa::device mlx5_0 mlx5_core
  efa::device mlx5_1 mlx5_core
  run fabric devices libfabric
  assert::status 0
  assert::contains "$output" '8 EFA devices (2 more entries are not EFA) at 100 Gb/sec, as expected'
}

@test "B200: ten entries of which only seven are EFA" {
  efa::fresh p6-b200.48xlarge 7
  local index
  for index in 0 1 2; do efa::device "mlx5_$index" mlx5_core; done
  run fabric devices
  assert::status 1
  assert::last 'FAIL: devices: 7 EFA devices (3 more entries are not EFA) at 100 Gb/sec, expected 8'
}

@test "GB200 may have four or eight, as it was launched" {
  local count
  for count in 4 8; do
    efa::fresh p6e-gb200.36xlarge "$count"
    run fabric devices
    assert::status 0
  done
  efa::fresh p6e-gb200.36xlarge 6
  run fabric devices
  assert::last 'FAIL: devices: 6 EFA devices at 100 Gb/sec, expected 4 or 8'
  run fabric --efa-interfaces 6 devices
  assert::status 0
}

@test "devices that come up late are waited for" {
  rm -r "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap47s0"
  command_on_node sleep "mkdir -p '$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap47s0/device'; ln -sfn '$ULTRACLUSTER_ROOT/sys/bus/pci/drivers/efa' '$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap47s0/device/driver'"
  run fabric devices
  assert::status 0
}

@test "an unknown type is not judged, unless the number is given" {
  without_cluster
  efa::fresh p9.48xlarge 64
  run fabric devices
  assert::status 1
  assert::last 'NOT JUDGED: devices: 64 EFA devices at 100 Gb/sec; how many this type should have is not known: give --efa-interfaces'
  run fabric --efa-interfaces 64 devices
  assert::status 0
}

@test "a declared type: cluster.json knows the number" {
  rm "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  efa::fresh p9.48xlarge 64
  cluster_json 'gpu["efa_interfaces"] = 64'
  run fabric devices
  assert::status 0
}

@test "a controller has no EFA, and need not" {
  node::is_controller
  efa::fresh m5.2xlarge 0
  run fabric devices modules memlock libfabric
  assert::status 1
  assert::contains "$output" 'skip        devices       this node has no EFA, and none is expected'
  assert::last 'NOT JUDGED: nothing was there to check'
}

@test "libfabric finds no device: it ends with 61" {
  command_on_node fi_info 'echo "fi_getinfo: -61 (No data available)" >&2; exit 61'
  run fabric libfabric
  assert::status 1
  assert::last 'FAIL: libfabric: fi_info ends with 61 (no data available): libfabric finds no EFA; the driver shows 32 devices'
  rm -r "$ULTRACLUSTER_ROOT/dev/infiniband"
  run fabric libfabric
  assert::last 'FAIL: libfabric: fi_info ends with 61 (no data available): libfabric finds no EFA; /dev/infiniband is missing'
}

@test "libfabric lists each interface once or twice: domains count" {
  fi_info_shows EFA-fe80::8ff:feff:fe00:1 32
  run fabric libfabric
  assert::status 0
  fi_info_shows efa-direct 31
  run fabric libfabric
  assert::status 1
  assert::last 'FAIL: libfabric: provider efa on 31 domains, but the driver shows 32 devices'
}

@test "another provider is none" {
  fi_info_entry TCP-IP lo 'tcp;ofi_rxm' >"$FAKE/fi_info"
  run fabric libfabric
  assert::status 1
  assert::last 'FAIL: libfabric: fi_info shows the provider tcp;ofi_rxm instead of efa'
}

@test "EKS hosts have no fi_info by design; elsewhere its absence proves nothing" {
  rm "$SANDBOX/bin/fi_info"
  run fabric libfabric
  assert::status 1
  assert::last 'NOT JUDGED: libfabric: no fi_info, neither on the PATH nor in /opt/amazon/efa/bin'
  mkdir -p "$ULTRACLUSTER_ROOT/etc/eks"
  run fabric devices modules libfabric
  assert::status 0
  assert::contains "$output" 'skip        libfabric     no fi_info on this host, as EKS images have it: run it in a pod'
  rm -r "$ULTRACLUSTER_ROOT/etc/eks"
  sed -i 's/hyperpod-slurm/hyperpod-eks/' "$SCRIPTS/cluster.json"
  run fabric devices modules libfabric
  assert::status 0
}

@test "modules: each of the three, loaded or built in" {
  local module
  for module in efa ib_uverbs ib_core; do
    mv "$ULTRACLUSTER_ROOT/sys/module/$module" "$SANDBOX/aside"
    run fabric modules
    assert::status 1
    assert::last "FAIL: modules: not loaded: $module"
    echo "$module 40960 0 - Live 0x0" >"$ULTRACLUSTER_ROOT/proc/modules"
    run fabric modules
    assert::status 0
    rm "$ULTRACLUSTER_ROOT/proc/modules"
    mv "$SANDBOX/aside" "$ULTRACLUSTER_ROOT/sys/module/$module"
  done
}

@test "locked memory: too little, enough, and not to be read" {
  echo 'Max locked memory         65536                65536                bytes' >"$ULTRACLUSTER_ROOT/proc/self/limits"
  run fabric memlock
  assert::status 1
  assert::last 'FAIL: memlock: 65536 bytes may be locked, EFA needs 17179869184; unlimited is better'
  echo 'Max locked memory         17179869184          unlimited            bytes' >"$ULTRACLUSTER_ROOT/proc/self/limits"
  run fabric memlock
  assert::status 0
  rm "$ULTRACLUSTER_ROOT/proc/self/limits"
  run fabric memlock
  assert::status 1
  assert::last 'NOT JUDGED: memlock: the limit of locked memory cannot be read'
}

# counters FACTOR: the counters of four devices; the first times FACTOR
counters() {
  local index=0 device
  for device in "$ULTRACLUSTER_ROOT"/sys/class/infiniband/*; do
    echo "$((1000 + 500 * ($1 - 1) * (index == 0 ? $2 : 1)))" >"$device/ports/1/hw_counters/tx_bytes"
    echo "$((2000 + 700 * ($1 - 1) * (index == 0 ? $2 : 1)))" >"$device/ports/1/hw_counters/rdma_write_bytes"
    echo 5 >"$device/ports/1/hw_counters/rx_drops"
    index=$((index + 1))
  done
}

@test "counters: all devices moved" {
  efa::fresh p4d.24xlarge 4
  counters 1 1
  run fabric counters before
  assert::status 0
  counters 3 1
  run fabric counters after
  assert::status 0
  assert::contains "$output" '4 devices moved 2400 to 2400 bytes each'
}

@test "counters: one device did not move" {
  efa::fresh p4d.24xlarge 4
  counters 1 1
  fabric counters before >/dev/null
  counters 3 0
  run fabric counters after
  assert::status 1
  assert::last 'FAIL: counters: devices that moved no data: rdmap16s0'
}

@test "counters: uneven, with errors, gone, reset, and never kept" {
  efa::fresh p4d.24xlarge 4
  run fabric counters after
  assert::status 1
  assert::contains "$output" 'NOT JUDGED: counters: no earlier counters in'
  counters 1 1
  fabric counters before >/dev/null
  counters 3 5
  echo 9 >"$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap17s0/ports/1/hw_counters/rx_drops"
  run fabric counters after
  assert::status 0
  assert::contains "$output" 'uneven: rdmap16s0 moved 12000 bytes, rdmap17s0 2400'
  assert::contains "$output" 'errors rose: rdmap17s0:rx_drops+4'
  rm -r "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap18s0"
  run fabric counters after
  assert::last 'FAIL: counters: devices that are gone: rdmap18s0'
  efa::device rdmap18s0
  counters 0 1
  run fabric counters after
  assert::status 1
  assert::contains "$(tail -n 1 <<<"$output")" 'NOT JUDGED: counters: counters went back, the device was reset:'
}

@test "counters: devices without any are not judged" {
  run fabric counters before
  assert::status 1
  assert::last 'NOT JUDGED: counters: no EFA device has counters'
}

# One process of a run on p5 that uses EFA.
nccl_log() {
  local line
  while IFS= read -r line; do echo "ip-10-1-0-21:4711:4711 [0] NCCL INFO $line"; done <<'LINES'
Bootstrap : Using ens32:10.1.0.21<0>
NET/OFI Initializing aws-ofi-nccl 1.22.0
NET/OFI Plugin selected platform: AWS
NET/OFI Using transport protocol RDMA (platform set)
NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
TUNER/Plugin: Using nccl_ofi_tuner
Using network Libfabric
LINES
}

@test "NCCL: the proof is there" {
  nccl_log >"$SANDBOX/log"
  run fabric nccl "$SANDBOX/log"
  assert::status 0
  assert::contains "$output" 'pass        plugin        1.22.0 on 1 processes'
}

@test "NCCL: a fall-back to TCP fails" {
  nccl_log | sed 's/Using network Libfabric/Using network Socket/' >"$SANDBOX/log"
  run fabric nccl "$SANDBOX/log"
  assert::status 1
  assert::last 'FAIL: tcp-fallback: NCCL fell back to TCP sockets: ip-10-1-0-21:4711'
}

@test "NCCL: fewer interfaces than the node has fail" {
  nccl_log | sed 's/found 32 nics/found 8 nics/' >"$SANDBOX/log"
  run fabric nccl "$SANDBOX/log"
  assert::status 1
  assert::last 'FAIL: interfaces: 8 EFA interfaces found, expected 32'
}

@test "NCCL: no log, an empty one, and none that can be read" {
  : >"$SANDBOX/log"
  run fabric nccl "$SANDBOX/log"
  assert::status 1
  assert::last 'NOT JUDGED: nccl-log: no lines of NCCL: run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET'
  run fabric nccl "$SANDBOX/nothing"
  assert::status 1
  assert::contains "$(tail -n 1 <<<"$output")" 'NOT JUDGED: nccl: the logs could not be read:'
  run fabric nccl
  assert::status 2
}

@test "wrong calls are refused, each with the reason" {
  local call
  while IFS='|' read -r call reason; do
    # shellcheck disable=SC2086 # words of a call
    run fabric $call
    assert::status 2
    assert::equal "fabric.sh: $reason" "${lines[0]}"
  done <<'CALLS'
--nonsense|unknown option --nonsense
--type|--type needs a value
--efa-interfaces many|--efa-interfaces takes a number, not 'many'
--write-mib 0|--write-mib takes a number from 10 on, not '0'
--lustre-path fsx|--lustre-path takes an absolute path, not 'fsx'
gpus|unknown check 'gpus'
counters|counters takes before or after
CALLS
}
