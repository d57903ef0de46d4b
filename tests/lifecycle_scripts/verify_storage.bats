#!/usr/bin/env bats
# GDRCopy, and Lustre over EFA: verify/fabric.sh.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers

scenario() {
  mkdir -p "$ULTRACLUSTER_ROOT"/{dev,proc/driver/nvidia,usr/lib/x86_64-linux-gnu,fsx,etc/systemd/system} \
    "$ULTRACLUSTER_ROOT"/sys/module/{gdrdrv,lustre,lnet} "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id"
  echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  touch "$ULTRACLUSTER_ROOT/dev/gdrdrv" "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version" "$ULTRACLUSTER_ROOT/usr/lib/x86_64-linux-gnu/libgdrapi.so.2.6"
  command_on_node gdrcopy_sanity 'echo "gdrcopy_sanity $*" >>"$FAKE/calls"; echo "Total: 38, Passed: 37, Failed: 0, Waived: 1"'
  cuda_driver 13.0
  echo '50 1 0:60 / /fsx rw,relatime shared:3 - lustre 10.1.0.9@tcp:/abcdefgh rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  touch "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service"
  command_on_node lfs ':'
  lnet 8 1000 50 '10.1.0.91 10.1.0.92'
}

# command_on_node NAME CODE: a fake
command_on_node() {
  rm -f "$SANDBOX/bin/$1"
  printf '#!/bin/bash\n%s\n' "$2" >"$SANDBOX/bin/$1"
  chmod +x "$SANDBOX/bin/$1"
}

cuda_driver() {
  command_on_node nvidia-smi "echo '| NVIDIA-SMI 595.91.07   Driver Version: 595.91.07   CUDA Version: $1     |'"
}

# lnet INTERFACES EFA TCP PEERS: what a write adds to the counters of each network, spread over its interfaces
lnet() {
  local -r gain_of_efa=$2 gain_of_tcp=$3
  local index
  : >"$FAKE/efa_nids"
  for ((index = 0; index < $1; index++)); do echo "10.1.0.$((100 + index))@efa" >>"$FAKE/efa_nids"; done
  echo '10.1.0.21@tcp' >"$FAKE/tcp_nids"
  echo 700 >"$FAKE/efa_count"
  echo 900 >"$FAKE/tcp_count"
  tr ' ' '\n' <<<"$4" | sed '/^$/d; s/$/@efa/' >"$FAKE/peers"
  : >"$FAKE/dead_peers"
  command_on_node lnetctl '
echo "lnetctl $*" >>"$FAKE/calls"
case $1 in
  peer) echo "peer:"; while read -r nid; do printf "    - primary nid: %s\n      peer ni:\n        - nid: %s\n" "${nid/efa/tcp}" "$nid"; done < <(cat "$FAKE/peers" "$FAKE/efa_nids") ;;
  ping) ! grep -qx "$2" "$FAKE/dead_peers" ;;
  net)
    network=${*: -1}
    printf "net:\n    - net type: %s\n      local NI(s):\n" "$network"
    while read -r nid; do
      printf "        - nid: %s\n          status: up\n" "$nid"
      [[ $* != *" -v "* ]] || printf "          statistics:\n              send_count: %s\n              recv_count: %s\n              drop_count: 9999\n" "$(<"$FAKE/${network}_count")" "$(<"$FAKE/${network}_count")"
    done <"$FAKE/${network}_nids"
    ;;
esac'
  command_on_node dd '
echo "dd $*" >>"$FAKE/calls"
[[ ! -e $FAKE/disk_full ]] || { echo "dd: error writing: No space left on device" >&2; exit 1; }
for network in efa tcp; do
  read -r count <"$FAKE/${network}_count"
  gain='"$gain_of_efa"'; [[ $network == efa ]] || gain='"$gain_of_tcp"'
  echo "$((count + gain))" >"$FAKE/${network}_count"
done
for argument in "$@"; do [[ $argument != of=* ]] || : >"${argument#of=}"; done'
}

fabric() {
  on_node "$SCRIPTS/verify/fabric.sh" "$@"
}

assert::last() { assert::equal "$1" "$(tail -n 1 <<<"$output")"; }

@test "GDRCopy works" {
  run fabric gdrcopy
  assert::status 0
  assert::called 'gdrcopy_sanity -v'
  assert::contains "$output" 'pass        gdrcopy       gdrcopy_sanity passed'
}

@test "GDRCopy: its own test fails" {
  command_on_node gdrcopy_sanity 'echo "Total: 38, Passed: 30, Failed: 8"; exit 1'
  run fabric gdrcopy
  assert::status 1
  assert::last 'FAIL: gdrcopy: gdrcopy_sanity ended with status 1: Total: 38, Passed: 30, Failed: 8'
}

@test "GDRCopy: no device node" {
  rm "$ULTRACLUSTER_ROOT/dev/gdrdrv"
  run fabric gdrcopy
  assert::status 1
  assert::last 'FAIL: gdrcopy: gdrdrv is loaded, but /dev/gdrdrv is missing'
}

@test "GDRCopy: older images keep an older name in a folder of its own" {
  mkdir -p "$ULTRACLUSTER_ROOT/opt/gdrcopy/bin"
  mv "$SANDBOX/bin/gdrcopy_sanity" "$ULTRACLUSTER_ROOT/opt/gdrcopy/bin/sanity"
  run fabric gdrcopy
  assert::status 0
  assert::contains "$output" 'sanity passed'
}

@test "GDRCopy: nothing to test it with proves nothing" {
  rm "$SANDBOX/bin/gdrcopy_sanity"
  run fabric gdrcopy
  assert::status 1
  assert::last 'NOT JUDGED: gdrcopy: no gdrcopy_sanity on this node, so nothing is proven'
}

@test "GDRCopy: our own build, its library and its test program" {
  rm "$ULTRACLUSTER_ROOT/usr/lib/x86_64-linux-gnu/libgdrapi.so.2.6"
  rm -r "$ULTRACLUSTER_ROOT/sys/module/gdrdrv"
  mkdir -p "$ULTRACLUSTER_ROOT/opt/ultracluster/gdrcopy-2.6"/{lib,bin}
  touch "$ULTRACLUSTER_ROOT/opt/ultracluster/gdrcopy-2.6/lib/libgdrapi.so.2.6"
  mv "$SANDBOX/bin/gdrcopy_sanity" "$ULTRACLUSTER_ROOT/opt/ultracluster/gdrcopy-2.6/bin"
  cuda_driver 13.3
  run fabric gdrcopy
  assert::contains "$output" 'warn        gdrcopy       gdrcopy_sanity passed, without gdrdrv'
  mkdir "$ULTRACLUSTER_ROOT/sys/module/gdrdrv"
  run fabric gdrcopy
  assert::status 0
}

@test "more interfaces for Lustre than a client may bind is a failure, fewer a warning" {
  cluster_json 'gpu |= {"lustre_efa_interfaces": 4, "lustre_efa_limited": True}'
  lnet 5 1000 50 '10.1.0.91'
  run fabric lustre
  assert::status 1
  assert::contains "$output" 'LNet bound 5 EFA interfaces instead of 4 (efa_interfaces_per_client): other nodes may not connect'
  lnet 3 1000 50 '10.1.0.91'
  run fabric lustre
  assert::status 0
  assert::contains "$output" 'lustre-bound'
}

@test "as many interfaces for Lustre as cluster.json says" {
  lnet 4 1000 50 '10.1.0.91'
  cluster_json 'gpu["lustre_efa_interfaces"] = 4'
  run fabric lustre
  assert::status 0
  [[ $output != *lustre-bound* ]]
}

@test "no gdrdrv: fails with an old driver, is a warning from CUDA 13.3 on" {
  rm -r "$ULTRACLUSTER_ROOT/sys/module/gdrdrv"
  local version
  for version in 12.8 13.0 13.2; do
    cuda_driver "$version"
    run fabric gdrcopy
    assert::status 1
    assert::last "FAIL: gdrcopy: gdrdrv is not loaded, and a driver for CUDA $version needs it (from 13.3 on it does not)"
  done
  for version in 13.3 13.10 14.0; do
    cuda_driver "$version"
    run fabric gdrcopy
    assert::contains "$output" 'warn        gdrcopy       gdrcopy_sanity passed, without gdrdrv: this driver lets GDRCopy map through DMA-BUF'
  done
}

@test "no gdrdrv: an old GDRCopy needs it with any driver" {
  rm -r "$ULTRACLUSTER_ROOT/sys/module/gdrdrv"
  cuda_driver 13.3
  mv "$ULTRACLUSTER_ROOT/usr/lib/x86_64-linux-gnu/libgdrapi.so."{2.6,2.5}
  run fabric gdrcopy
  assert::status 1
  assert::last 'FAIL: gdrcopy: gdrdrv is not loaded, and GDRCopy 2.5 needs it (from 2.6 on it does not)'
  rm "$ULTRACLUSTER_ROOT"/usr/lib/x86_64-linux-gnu/libgdrapi.so.2.5
  run fabric gdrcopy
  assert::status 1
  assert::contains "$output" 'NOT JUDGED: gdrcopy: gdrdrv is not loaded, and the release of GDRCopy is not known'
}

@test "no gdrdrv: a driver that does not tell its version is not judged" {
  rm -r "$ULTRACLUSTER_ROOT/sys/module/gdrdrv"
  command_on_node nvidia-smi 'exit 9'
  run fabric gdrcopy
  assert::status 1
  assert::contains "$output" 'NOT JUDGED: gdrcopy: gdrdrv is not loaded; whether it is needed depends on the CUDA version'
}

@test "GDRCopy is not for nodes without an NVIDIA driver" {
  rm "$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
  run fabric gdrcopy
  assert::contains "$output" 'skip        gdrcopy       no NVIDIA driver on this node'
}

@test "Lustre over EFA: sums over eight interfaces" {
  lnet 8 100 300 '10.1.0.91 10.1.0.92'
  run fabric lustre
  assert::status 0
  # 100 sent and 100 received on each of eight; a single interface alone would be less than TCP's 600
  assert::contains "$output" '1024 MiB written: 1600 messages over EFA on 8 interfaces, 600 over TCP'
  assert::contains "$(cat "$FAKE/calls")" 'bs=4M count=256 oflag=direct'
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/fsx")"
}

@test "Lustre on TCP although EFA was asked for" {
  lnet 0 0 1000 ''
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre-efa: Lustre is on TCP although EFA was asked for: configure-efa-fsx-lustre-client.service bound no interface'
  rm "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service"
  run fabric --lustre-efa lustre
  assert::status 1
  assert::last 'FAIL: lustre-efa: Lustre is on TCP although EFA was asked for: configure-efa-fsx-lustre-client.service is not set up'
}

@test "cluster.json asks for EFA, and nobody set it up" {
  lnet 0 0 1000 ''
  rm "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service" "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  sed -i 's|"path": "/fsx", "dns|"efa": true, "path": "/fsx", "dns|' "$SCRIPTS/cluster.json"
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre-efa: Lustre is on TCP although EFA was asked for: configure-efa-fsx-lustre-client.service is not set up'
}

@test "Lustre on TCP: the set-up service failed" {
  lnet 0 0 1000 ''
  command_on_node systemctl '[[ $1 == is-failed ]]'
  run fabric lustre
  assert::last 'FAIL: lustre-efa: Lustre is on TCP although EFA was asked for: configure-efa-fsx-lustre-client.service failed'
}

@test "Lustre on TCP, and nobody asked for EFA" {
  lnet 0 0 1000 ''
  rm "$ULTRACLUSTER_ROOT/etc/systemd/system/configure-efa-fsx-lustre-client.service"
  run fabric lustre
  assert::status 0
  assert::contains "$output" 'skip        lustre-efa    Lustre is on TCP, and EFA was not asked for'
}

@test "EFA is bound, but the data goes over TCP" {
  lnet 8 2 600 '10.1.0.91'
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre-efa: data does not go over EFA: 1024 MiB written: 32 messages over EFA on 8 interfaces, 1200 over TCP, at least 128 expected over EFA'
}

@test "EFA moved more than TCP, but less than what was written" {
  lnet 8 2 1 '10.1.0.91'
  run fabric lustre
  assert::status 1
  assert::contains "$output" '32 messages over EFA on 8 interfaces, 2 over TCP, at least 128 expected over EFA'
}

@test "larger bulk requests are fewer" {
  lnet 8 2 1 '10.1.0.91'
  command_on_node lctl 'printf "4096\n16384\n"'
  run fabric lustre
  assert::status 0
}

@test "fewer interfaces than the set-up binds are a warning" {
  lnet 2 1000 50 '10.1.0.91'
  run fabric lustre
  assert::status 0
  assert::contains "$output" 'warn        lustre-bound  LNet bound 2 EFA interfaces, the FSx set-up binds 8 on this type'
}

@test "a type that FSx does not serve over EFA" {
  lnet 0 0 1000 ''
  node::type p4d.24xlarge
  cluster_json 'cluster["mounts"]["lustre"]["efa"] = True'
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre-efa: Lustre over EFA was asked for, but FSx does not serve this instance type over EFA'
}

@test "every server is pinged, none of the own addresses" {
  run fabric lustre
  assert::called 'lnetctl ping 10.1.0.91@efa'
  assert::called 'lnetctl ping 10.1.0.92@efa'
  assert::never_called 'lnetctl ping 10.1.0.100@efa'
  echo 10.1.0.92@efa >"$FAKE/dead_peers"
  run fabric lustre
  assert::status 0
  assert::contains "$output" '1 of 2 EFA addresses do not answer: 10.1.0.92@efa'
  cp "$FAKE/peers" "$FAKE/dead_peers"
  run fabric lustre
  assert::status 1
  assert::contains "$(tail -n 1 <<<"$output")" 'FAIL: lustre-peers: none of 2 EFA addresses answers: do the security groups'
}

@test "no server is known yet" {
  lnet 8 1000 50 ''
  run fabric lustre
  assert::status 1
  assert::last 'NOT JUDGED: lustre-peers: LNet knows no server at an EFA address yet'
}

@test "a file that cannot be written is not judged, and nothing is left" {
  touch "$FAKE/disk_full"
  run fabric lustre
  assert::status 1
  assert::contains "$(tail -n 1 <<<"$output")" 'NOT JUDGED: lustre-efa: 1024 MiB could not be written to /fsx: dd: error writing'
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/fsx")"
}

@test "no client for the running kernel, and one that is not loaded" {
  command_on_node modinfo 'exit 1'
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre: there is no Lustre module for the running kernel'
  command_on_node modinfo 'echo 2.15.6'
  rm -r "$ULTRACLUSTER_ROOT/sys/module/lnet"
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: lustre: the modules lustre and lnet 2.15.6 are there, but not loaded'
}

@test "not mounted, mounted as something else, and servers that do not answer" {
  command_on_node lfs 'exit 5'
  run fabric lustre
  assert::status 1
  assert::last 'FAIL: mount: /fsx: lfs df does not answer'
  sed -i 's/- lustre .*/- nfs4 10.1.0.9:\/fsx rw/' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run fabric lustre
  assert::last 'FAIL: mount: /fsx is not a Lustre mount, but nfs4 from 10.1.0.9:/fsx'
  sed -i '/ \/fsx /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run fabric lustre
  assert::last 'FAIL: mount: /fsx is not a Lustre mount'
}

@test "without lnetctl nothing is known" {
  rm "$SANDBOX/bin/lnetctl"
  run fabric lustre
  assert::status 1
  assert::last 'NOT JUDGED: lustre-efa: no lnetctl: whether Lustre uses EFA cannot be seen'
}
