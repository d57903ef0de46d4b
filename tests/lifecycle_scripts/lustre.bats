#!/usr/bin/env bats
# The Lustre client, Lustre over EFA, GPUDirect Storage, and what the guide for FSx sets on large clients.
# shellcheck disable=SC2016 # what a fake does is expanded by the fake

load helpers
load software

readonly EFA_UNIT=configure-efa-fsx-lustre-client

# A client that is complete, a file system with EFA, and a node with its EFA devices
lustre::with_efa() {
  cluster_json 'cluster["mounts"]["lustre"]["efa"] = True; gpu["gds"] = True'
  lustre::client
  rm -rf "$ULTRACLUSTER_ROOT"/sys/class/infiniband/*
  node::efa_devices "${1:-32}"
}

lustre::client() {
  echo 2.15.6 >"$FAKE/modules/lustre"
  echo 1.2.2 >"$FAKE/modules/kefalnd"
  software::script /sbin/mount.lustre
}

# As HyperPod leaves it before its OnInitComplete script: in fstab, with an automount, mounted over TCP.
lustre::mounted() {
  echo 'fs-0123@tcp:/abcdefgh /fsx lustre noatime,flock,_netdev,x-systemd.automount 0 0' >>"$ULTRACLUSTER_ROOT/etc/fstab"
  {
    echo '50 1 0:59 / /fsx rw,relatime shared:3 - autofs systemd-1 rw'
    echo '51 50 0:60 / /fsx rw,relatime shared:4 - lustre 10.1.0.9@tcp:/abcdefgh rw'
  } >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  mkdir -p "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet,lustre} "$ULTRACLUSTER_ROOT/fsx" "$FAKE/units/fsx.automount"
}

lustre::is_mounted() { grep -q ' /fsx .* - lustre ' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"; }

message() { grep "\"step\": \"$1\"" "$REPORT" | tail -n 1 | sed 's/.*"message": "\([^"]*\)".*/\1/'; }

@test "over EFA: set up while Lustre is not loaded yet, all interfaces bound" {
  lustre::with_efa
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
  assert::called 'setup.sh '
  assert::equal '8 EFA interfaces; nothing is mounted yet' "$(message lustre_efa)"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/systemd/system/fsx.mount.d/10-ultracluster-efa.conf")" "After=$EFA_UNIT.service"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=already
}

@test "over EFA: what is mounted already is unmounted, the modules unloaded, and mounted again" {
  lustre::with_efa
  lustre::mounted
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
  assert::equal 'umount /fsx systemctl stop fsx.automount lustre_rmmod setup.sh systemctl start fsx.automount mount /fsx' \
    "$(grep -E '^(umount|lustre_rmmod|setup.sh|mount |systemctl (stop|start))' "$FAKE/calls" | sed "s|$ULTRACLUSTER_ROOT||; s/ *$//" | xargs)"
  assert::equal '8 EFA interfaces; 112 messages over EFA, 0 over TCP' "$(message lustre_efa)"
  lustre::is_mounted
  forget_calls
  run run_steps lustre_efa
  assert::states lustre_efa=already
  assert::no_changes
}

@test "over EFA: a file system in use is left alone, and who uses it is named" {
  lustre::with_efa
  lustre::mounted
  touch "$FAKE/busy"
  mkdir -p "$ULTRACLUSTER_ROOT/proc/4711/fd"
  ln -s /fsx/home/ubuntu "$ULTRACLUSTER_ROOT/proc/4711/cwd"
  echo python3 >"$ULTRACLUSTER_ROOT/proc/4711/comm"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::contains "$(message lustre_efa)" "/fsx is in use by python3 (4711) and was mounted before EFA was set up: Lustre uses TCP"
  assert::never_called lustre_rmmod
  assert::never_called setup.sh
  lustre::is_mounted
}

@test "over EFA: modules that do not unload leave the file system mounted" {
  lustre::with_efa
  lustre::mounted
  mkdir -p "$FAKE/lnet"
  touch "$FAKE/lnet/held"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::contains "$(message lustre_efa)" "the Lustre modules are in use and do not unload"
  lustre::is_mounted
}

@test "over EFA: further file systems of ours are unmounted with the first, and mounted again" {
  lustre::with_efa
  lustre::mounted
  cluster_json 'cluster["mounts"]["further_lustre"] = {"fast": {"path": "/fast", "dns_name": "fs-0999.fsx.us-east-1.amazonaws.com", "mount_name": "zyxwvuts", "efa": False}}'
  echo 'fs-0999@tcp:/zyxwvuts /fast lustre noatime,flock,_netdev 0 0' >>"$ULTRACLUSTER_ROOT/etc/fstab"
  echo '60 1 0:66 / /fast rw shared:9 - lustre 10.1.0.7@tcp:/zyxwvuts rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  mkdir -p "$ULTRACLUSTER_ROOT/fast"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
  assert::called "umount $ULTRACLUSTER_ROOT/fast"
  assert::called "mount $ULTRACLUSTER_ROOT/fast"
  lustre::is_mounted
  grep -q ' /fast .* - lustre ' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
}

@test "over EFA: another Lustre file system is not touched" {
  lustre::with_efa
  lustre::mounted
  echo '60 1 0:66 / /other rw shared:9 - lustre 10.1.0.7@tcp:/another rw' >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::contains "$(message lustre_efa)" "another Lustre file system is mounted at /other"
  assert::never_called umount
  assert::never_called lustre_rmmod
}

@test "over EFA: the state counts, not the status of FSx's script" {
  lustre::with_efa
  echo 1 >"$FAKE/fsx_setup"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
}

@test "over EFA: fewer interfaces than the type has are named, and the file system comes back" {
  lustre::with_efa
  lustre::mounted
  echo 2 >"$FAKE/fsx_interfaces"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::equal "LNet has 2 of 8 EFA interfaces after FSx's set-up: Lustre uses TCP" "$(message lustre_efa)"
  lustre::is_mounted
  rm "$FAKE/modules/kefalnd" "$FAKE/lnet/efa"
  echo 0 >"$FAKE/fsx_interfaces"
  run run_steps lustre_efa
  assert::equal "LNet has 0 of 8 EFA interfaces after FSx's set-up: this Lustre client has no module for EFA (kefalnd): Lustre uses TCP" "$(message lustre_efa)"
}

@test "over EFA: as many interfaces as cluster.json says, and 0 is TCP" {
  lustre::with_efa
  cluster_json 'gpu["lustre_efa_interfaces"] = 16'
  echo 16 >"$FAKE/fsx_interfaces"
  run run_steps lustre_efa
  assert::equal '16 EFA interfaces; nothing is mounted yet' "$(message lustre_efa)"
  cluster_json 'gpu["lustre_efa_interfaces"] = 0'
  run run_steps lustre_efa
  assert::states lustre_efa=skipped
  assert::equal 'p5.48xlarge uses Lustre over TCP' "$(message lustre_efa)"
}

# The names of those that are bound, and each one's NUMA node
lustre::bound() { on_node lnetctl net show --net efa | awk '$1 == "0:" { print $2 }' | xargs; }

lustre::on_two_sockets() {
  local index
  for ((index = 0; index < 32; index++)); do
    echo $((index / 16)) >"$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap$index/device/numa_node"
  done
}

readonly LIMIT=/etc/systemd/system/$EFA_UNIT.service.d/10-ultracluster-interfaces.conf

@test "over EFA: exactly so many interfaces as a client may bind, on both sockets, after a boot, too" {
  lustre::with_efa
  lustre::on_two_sockets
  for number in 4 2 1; do
    rm -rf "$FAKE/lnet" "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet}
    cluster_json 'gpu |= {"lustre_efa_interfaces": '$number', "lustre_efa_limited": True}'
    run run_steps lustre_efa
    assert::status 0
    assert::states lustre_efa=installed
    assert::equal "$number EFA interfaces; nothing is mounted yet" "$(message lustre_efa)"
    mapfile -t sockets < <(for name in $(lustre::bound); do cat "$ULTRACLUSTER_ROOT/sys/class/infiniband/$name/device/numa_node"; done | sort | uniq -c)
    ((number == 1 ? ${#sockets[@]} == 1 : ${#sockets[@]} == 2))
    assert::contains "$(cat "$ULTRACLUSTER_ROOT$LIMIT")" "ExecStartPost=/usr/local/sbin/ultracluster-lustre-efa-interfaces $number"
    forget_calls
    run run_steps lustre_efa
    assert::states lustre_efa=already
    assert::no_changes
  done
  # a boot: FSx's set-up binds all of its own, and the unit's drop-in runs
  echo 8 >"$FAKE/lnet/efa"
  run on_node "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-lustre-efa-interfaces" 2
  assert::status 0
  assert::equal 2 "$(cat "$FAKE/lnet/efa")"
}

@test "over EFA: one interface too many is removed while the file system is mounted; none goes where none is too many" {
  lustre::with_efa
  lustre::mounted
  cluster_json 'gpu |= {"lustre_efa_interfaces": 4, "lustre_efa_limited": True}'
  run run_steps lustre_efa
  assert::states lustre_efa=installed
  echo 5 >"$FAKE/lnet/efa"
  forget_calls
  run run_steps lustre_efa
  assert::states lustre_efa=installed
  assert::equal 4 "$(cat "$FAKE/lnet/efa")"
  assert::never_called umount
  assert::equal 1 "$(grep -c '^lnetctl net del' "$FAKE/calls")"
  # more again, and then as FSx's set-up does it
  cluster_json 'gpu["lustre_efa_interfaces"] = 8; del gpu["lustre_efa_limited"]'
  run run_steps lustre_efa
  assert::equal 8 "$(cat "$FAKE/lnet/efa")"
  [[ ! -e $ULTRACLUSTER_ROOT$LIMIT ]]
  echo 9 >"$FAKE/lnet/efa"
  run run_steps lustre_efa
  assert::states lustre_efa=already
}

@test "over EFA: interfaces that LNet does not give up are named" {
  lustre::with_efa
  cluster_json 'gpu |= {"lustre_efa_interfaces": 4, "lustre_efa_limited": True}'
  fake_before=$(<"$SANDBOX/bin/lnetctl")
  rm "$SANDBOX/bin/lnetctl"
  {
    echo '#!/bin/bash'
    echo '[[ $2 != del ]] || exit 1'
    tail -n +2 <<<"$fake_before"
  } >"$SANDBOX/bin/lnetctl"
  chmod +x "$SANDBOX/bin/lnetctl"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::equal 'LNet has 8 EFA interfaces instead of 4 (efa_interfaces_per_client): other nodes may not connect to the file system' "$(message lustre_efa)"
}

@test "over EFA: no more interfaces than the node has, and one on a type that nobody knows" {
  lustre::with_efa 4
  echo 4 >"$FAKE/fsx_interfaces"
  run run_steps lustre_efa
  assert::equal '4 EFA interfaces; nothing is mounted yet' "$(message lustre_efa)"
  cluster_json 'del gpu["lustre_efa_interfaces"]'
  run run_steps lustre_efa
  assert::states lustre_efa=already
}

@test "over EFA: the image's own script, before the archive of the release" {
  lustre::with_efa
  mkdir -p "$ULTRACLUSTER_ROOT/etc/eks/configure-efa-fsx-lustre-client"
  { echo 'echo "from the image" >>"$FAKE/calls"' && software::fsx_setup; } >"$ULTRACLUSTER_ROOT/etc/eks/configure-efa-fsx-lustre-client/setup.sh"
  rm "$FAKE/web/configure-efa-fsx-lustre-client.zip"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
  assert::called 'from the image'
}

@test "over EFA: a set-up that came after the modules is started again without them" {
  lustre::with_efa
  lustre::mounted
  mkdir -p "$FAKE/units/$EFA_UNIT" "$FAKE/lnet"
  touch "$FAKE/units/$EFA_UNIT"/{enabled,active}
  echo 3 >"$FAKE/lnet/efa"
  software::fsx_setup >"$FAKE/units/$EFA_UNIT/start"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=installed
  assert::contains "$(cat "$FAKE/calls")" "systemctl restart $EFA_UNIT.service"
  assert::equal 1 "$(grep -c '^setup.sh' "$FAKE/calls")"
}

@test "over EFA: bound, but the servers answer over TCP" {
  lustre::with_efa
  lustre::mounted
  mkdir -p "$FAKE/lnet"
  echo tcp >"$FAKE/lnet/uses"
  echo 1 >"$FAKE/lnet/tcp"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::contains "$(message lustre_efa)" "8 EFA interfaces are bound, but Lustre uses TCP (28 messages)"
}

@test "over EFA: kernels before 6.8 on Ubuntu are refused, any other is tried" {
  lustre::with_efa
  echo 6.5.0-1024-aws >"$FAKE/kernel"
  run run_steps lustre_efa
  assert::status 0
  assert::states lustre_efa=degraded
  assert::equal 'Lustre over EFA needs kernel 6.8 or newer on Ubuntu, this is 6.5.0-1024-aws: Lustre uses TCP' "$(message lustre_efa)"
  echo 7.3.0-1001-aws >"$FAKE/kernel"
  run run_steps lustre_efa
  assert::states lustre_efa=installed
}

@test "over EFA: killed at any change, the next run completes it, and the file system is mounted" {
  scenario_before_lustre=$(declare -f scenario)
  eval "${scenario_before_lustre/scenario/software_scenario}"
  scenario() {
    software_scenario
    lustre::with_efa
    lustre::mounted
    # Mounted as it is with an automount; without one, to see that it is mounted again and not left to the next look
    sed -i 's/,x-systemd.automount//' "$ULTRACLUSTER_ROOT/etc/fstab"
    sed -i '/ - autofs /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  }
  node::renew
  kill_everywhere lustre_efa 6
}

@test "over EFA: the automount that a killed run has stopped is started again" {
  lustre::with_efa
  lustre::mounted
  sed -i '/ \/fsx /d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  rm -r "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet,lustre}
  run run_steps lustre_efa
  assert::status 0
  assert::called 'systemctl start fsx.automount'
  lustre::is_mounted
}

@test "GPUDirect Storage: built for 128 peers, loaded, and FSx's set-up is told" {
  lustre::with_efa
  run run_steps nvidia_fs lustre_efa
  assert::status 0
  assert::states nvidia_fs=installed lustre_efa=installed
  assert::called 'NVFS_MAX_PEER_DEVS=128'
  assert::called 'modprobe nvidia_fs'
  assert::called 'setup.sh --optimized-for-gds'
  assert::equal nvidia_fs "$(cat "$ULTRACLUSTER_ROOT/etc/modules-load.d/ultracluster-nvidia-fs.conf")"
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/dkms/nvidia-fs.conf")" 'NVFS_MAX_PEER_DEVS=128'
  run run_steps nvidia_fs
  assert::states nvidia_fs=already
}

@test "GPUDirect Storage: the image's own module stays" {
  lustre::with_efa
  echo 2.29 >"$FAKE/modules/nvidia_fs"
  run run_steps nvidia_fs
  assert::status 0
  assert::states nvidia_fs=installed
  assert::never_called apt-get
  assert::called 'modprobe nvidia_fs'
}

@test "GPUDirect Storage: FSx's set-up does not know the type for it: without" {
  lustre::with_efa
  echo 2.29 >"$FAKE/modules/nvidia_fs"
  touch "$FAKE/no_gds"
  run run_steps lustre_efa
  assert::status 0
  assert::called 'setup.sh --optimized-for-gds'
  assert::called 'setup.sh '
}

@test "GPUDirect Storage: where cluster.json says so, with the open driver" {
  lustre::with_efa
  cluster_json 'gpu["gds"] = False'
  run run_steps nvidia_fs
  assert::states nvidia_fs=skipped
  assert::equal 'p5.48xlarge has no GPUDirect Storage' "$(message nvidia_fs)"
  cluster_json 'del gpu["gds"]'
  run run_steps nvidia_fs
  assert::states nvidia_fs=skipped
  assert::contains "$output" 'whether FSx supports GPUDirect Storage on p5.48xlarge is not known: it is left out'
  cluster_json 'gpu["gds"] = True'
  echo NVIDIA >"$FAKE/modules/nvidia.license"
  run run_steps nvidia_fs
  assert::status 0
  assert::states nvidia_fs=degraded
  assert::contains "$(message nvidia_fs)" "needs NVIDIA's open driver"
}

@test "large clients: the modules' options before they are loaded, the parameters when it is mounted" {
  lustre::client
  echo 192 >"$FAKE/processors"
  run run_steps lustre_tuning
  assert::status 0
  assert::states lustre_tuning=installed
  assert::contains "$(cat "$ULTRACLUSTER_ROOT/etc/modprobe.d/ultracluster-lustre.conf")" 'options ptlrpc ptlrpcd_per_cpt_max=32'
  assert::called 'systemctl enable ultracluster-lustre-tuning.timer'
  assert::never_called 'lctl set_param'
  mkdir -p "$FAKE/parameters"
  echo 8 >"$FAKE/parameters/osc.*OST*.max_rpcs_in_flight"
  echo 8 >"$FAKE/parameters/mdc.*.max_rpcs_in_flight"
  echo 7 >"$FAKE/parameters/mdc.*.max_mod_rpcs_in_flight"
  echo 0 >"$FAKE/parameters/ldlm.namespaces.*.lru_size"
  echo 512 >"$FAKE/parameters/llite.*.statahead_max"
  run run_steps filesystems
  assert::status 0
  assert::equal 'mdc.*.max_mod_rpcs_in_flight=50 mdc.*.max_rpcs_in_flight=64' \
    "$(sed -n 's/^lctl set_param \(mdc.*\)/\1/p' "$FAKE/calls" | sort | xargs)"
  assert::called 'lctl set_param osc.*OST*.max_rpcs_in_flight=32'
  assert::called 'lctl set_param ldlm.namespaces.*.lru_size=19200'
  assert::never_called 'lctl set_param llite'
  run run_steps lustre_tuning
  assert::states lustre_tuning=already
  # Mounted again
  echo 8 >"$FAKE/parameters/osc.*OST*.max_rpcs_in_flight"
  run run_steps lustre_tuning
  assert::states lustre_tuning=installed
}

@test "small clients: only what all get" {
  lustre::client
  echo 8 >"$FAKE/processors"
  echo 'MemTotal: 33000000 kB' >"$ULTRACLUSTER_ROOT/proc/meminfo"
  mkdir -p "$FAKE/parameters"
  echo 8 >"$FAKE/parameters/osc.*OST*.max_rpcs_in_flight"
  echo 32 >"$FAKE/parameters/llite.*.statahead_max"
  run run_steps lustre_tuning
  assert::status 0
  [[ ! -e $ULTRACLUSTER_ROOT/etc/modprobe.d/ultracluster-lustre.conf ]]
  assert::equal 'lctl set_param llite.*.statahead_max=512' "$(grep '^lctl set_param' "$FAKE/calls")"
  # On EKS over TCP the client is in the container of the CSI driver: nothing is tuned, and nothing is called in force.
  rm "$SANDBOX/bin/lctl"
  run run_steps lustre_tuning
  assert::states lustre_tuning=already
  assert::contains "$(message lustre_tuning)" 'this host has no lctl'
  [[ $(message lustre_tuning) != *'in force'* ]]
}

@test "a kernel that nobody knows is tried: FSx's repository has its modules" {
  echo 6.14.0-1010-aws >"$FAKE/kernel"
  software::brings lustre-client-modules-6.14.0-1010-aws <<'EOT'
echo 2.15.9 >"$FAKE/modules/lustre"
EOT
  run run_steps lustre_client
  assert::status 0
  assert::states lustre_client=installed
  assert::contains "$output" 'WARN  lustre_client: kernel 6.14.0-1010-aws is not in the Lustre matrix of release 2026.11'
}

@test "a kernel that nobody knows, and no modules: the reason names kernel, package and remedy" {
  echo 6.14.0-1010-aws >"$FAKE/kernel"
  run run_steps lustre_client
  assert::status 1
  assert::equal "no Lustre client for kernel 6.14.0-1010-aws: cannot install lustre-client-modules-6.14.0-1010-aws lustre-client-utils: see the log above; release 2026.11 knows Lustre clients for 6.8.0-1017..6.8.0: choose an image with such a kernel" "$(message lustre_client)"
}

# An EKS node of this system and kernel
lustre::on_eks() {
  rm "$ULTRACLUSTER_ROOT/opt/ml/config/resource_config.json"
  mkdir -p "$ULTRACLUSTER_ROOT/etc/eks" "$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id"
  echo p5.48xlarge >"$ULTRACLUSTER_ROOT/sys/devices/virtual/dmi/id/product_name"
  printf 'ID=amzn\nVERSION_ID="2023"\n' >"$ULTRACLUSTER_ROOT/etc/os-release"
  echo 6.12.94-123.180.amzn2023.x86_64 >"$FAKE/kernel"
  rm "$SANDBOX/bin/apt-get" "$SANDBOX/bin/dpkg" "$SANDBOX/bin/dpkg-query"
}

eks_steps() {
  on_node bash -c "set -euo pipefail; source '$SCRIPTS/lib/entry.sh'; ENTRY_IDENTIFY=entry::identify_eks; ENTRY_GROUP=; entry::main $*"
}

@test "on EKS over TCP the module is enough, whatever the kernel: the CSI driver's container mounts" {
  lustre::on_eks
  echo 2.15.6 >"$FAKE/modules/lustre"
  run eks_steps lustre_client
  assert::status 0
  assert::states lustre_client=already
  assert::called 'modprobe lustre'
  assert::never_called dnf
}

@test "on EKS over TCP a missing module degrades the node, and does not end it" {
  lustre::on_eks
  run eks_steps lustre_client
  assert::status 0
  assert::states lustre_client=degraded
  assert::contains "$(message lustre_client)" 'no Lustre client for kernel 6.12.94-123.180.amzn2023.x86_64'
}

@test "on EKS with EFA the client is installed" {
  lustre::on_eks
  cluster_json 'cluster["mounts"]["lustre"]["efa"] = True'
  echo 2.15.6 >"$FAKE/modules/lustre"
  release::change 'components["lustre-client"]["packages"].append(packages("lustre-client", system=["al2023"]))'
  software::brings lustre-client <<'EOT'
software::script /sbin/mount.lustre
EOT
  run eks_steps lustre_client
  assert::status 0
  assert::states lustre_client=installed
  assert::contains "$(cat "$FAKE/calls")" 'install lustre-client'
}
