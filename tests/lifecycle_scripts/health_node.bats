#!/usr/bin/env bats
# What the kernel and the node's own files tell: log, EFA, Lustre, disks, Neuron, time.

load helpers
load health

readonly BOOT_ID=0123456789abcdef0123456789abcdef

healthy() {
  local index
  mkdir -p "$ULTRACLUSTER_ROOT"/{fsx,sys/class/infiniband,sys/class/nvme,sys/bus/pci/drivers/efa,sys/devices/virtual/neuron_device,sys/module}
  for ((index = 0; index < 32; index++)); do efa_device "rdmap$((16 + index))s0"; done
  for ((index = 0; index < 9; index++)); do nvme_device "$index" 'Amazon EC2 NVMe Instance Storage'; done
  nvme_device 0 'Amazon Elastic Block Store'
  echo "36 35 98:0 / /fsx rw,relatime shared:1 - lustre 10.1.0.9@tcp:/abcdefgh rw" >>"$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  mkdir -p "$ULTRACLUSTER_ROOT"/{var,tmp,opt}
  prints df $'    Avail      Size Mounted on\n 90000000 100000000 /\n 9000000000 9000000000 /scratch'
  prints chronyc "A9FEA97B,169.254.169.123,4,$(date +%s).123456789,-0.000001234,-0.000001,0.00001,1.0,0.0,0.1,0.0002,0.0003,16.1,Normal"
  journal
}

# journal [MESSAGE [TRANSPORT]]...: the log of this boot, which is asked with --after-cursor
journal() {
  local number=0 message
  : >"$FAKE/journal"
  while (($# > 0)); do
    number=$((number + 1))
    message=${1//\\/\\\\}
    printf '{"__CURSOR": "s=1;i=%s", "__MONOTONIC_TIMESTAMP": "%s000000", "__REALTIME_TIMESTAMP": "%s000000", "_BOOT_ID": "%s", "_TRANSPORT": "%s", "MESSAGE": "%s"}\n' \
      "$number" "$number" "$((1763841600 + number))" "$BOOT_ID" "${2:-kernel}" "${message//\"/\\\"}" >>"$FAKE/journal"
    shift
    (($# == 0)) || shift
  done
  cat >"$SANDBOX/bin/journalctl" <<'BASH'
#!/bin/bash
echo "journalctl $*" >>"$FAKE/calls"
after=
for argument in "$@"; do [[ $argument != --after-cursor=* ]] || after=${argument#*=}; done
while IFS= read -r line; do
  [[ -n $after ]] || printf '%s\n' "$line"
  [[ $line != *"\"$after\""* ]] || after=
done <"$FAKE/journal"
BASH
  chmod 755 "$SANDBOX/bin/journalctl"
  echo 01234567-89ab-cdef-0123-456789abcdef >"$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
}

readonly XID_79="NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
readonly XID_13='NVRM: Xid (PCI:0000:53:00): 13, pid=4242, name=python3, Graphics Exception: ESR 0x546fb0=0x11f000e'

# --- xid ---

@test "xid: nothing is logged" {
  finds ok ok xid
}

@test "xid: a fault is told once" {
  journal 'usb 1-1: new device' kernel "$XID_79"
  finds critical 79 xid quick 'GPU has fallen off the bus'
  says action reboot
  says fault xid-79
  says gpu 0000:53:00
  finds ok ok xid
  journal 'usb 1-1: new device' kernel "$XID_79" kernel "$XID_13"
  finds ok 13 xid
  says fault xid-13
}

@test "xid: a look that is ended before it has reported takes no line with it" {
  rm -f "$SANDBOX/bin/python3"
  cat >"$SANDBOX/bin/python3" <<BASH
#!$BASH
[[ "\$*" != *report.py* || ! -e "$FAKE/busy" ]] || exec sleep 300
exec "$PYTHON" "\$@"
BASH
  chmod 755 "$SANDBOX/bin/python3"
  journal 'usb 1-1: new device' kernel "$XID_79"
  touch "$FAKE/busy"
  LOOK_SECONDS=5 finds unknown late xid
  rm "$FAKE/busy"
  finds critical 79 xid
  finds ok ok xid
}

@test "xid: the gravest of several speaks" {
  journal "$XID_13" kernel "$XID_79" kernel 'nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)'
  finds critical 79 xid quick 'sxid_stalled: nvidia-nvswitch3'
}

@test "xid: what a user logs does not count" {
  journal "$XID_79" syslog "$XID_79" journal "$XID_79" stdout "python3[1]: $XID_79"
  finds ok ok xid
}

@test "xid: after a boot the log is read from its beginning, and of an earlier boot nothing" {
  journal "$XID_79"
  finds critical 79 xid
  journal 'usb 1-1: new device'
  echo 99999999-89ab-cdef-0123-456789abcdef >"$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
  forget_calls
  finds ok ok xid
  [[ $(<"$FAKE/calls") != *after-cursor* ]]
}

@test "xid: malformed lines, a state that is damaged, hung, absent" {
  local text
  garbage >"$FAKE/journal"
  finds ok ok xid
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/xid.state"
    finds ok ok xid
  done < <(some_garbage)
  prints journalctl 'Failed to open journal' 1
  finds unknown unread xid
  hangs journalctl
  finds unknown late xid
  is_absent journalctl
  finds unknown absent xid
}

# --- efa ---

efa_device() {
  local -r folder=$ULTRACLUSTER_ROOT/sys/class/infiniband/$1
  mkdir -p "$folder/device" "$folder/ports/1/hw_counters"
  ln -s "../../../../bus/pci/drivers/${2:-efa}" "$folder/device/driver"
  echo '4: ACTIVE' >"$folder/ports/1/state"
  echo 0 >"$folder/ports/1/hw_counters/rx_drops"
  echo 0 >"$folder/ports/1/hw_counters/rdma_read_wr_err"
}

@test "efa: as many devices as the type has" {
  finds ok ok efa quick '32 EFA devices'
}

@test "efa: fewer, and none" {
  rm -r "$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap16s0"
  finds critical missing efa quick '31 EFA devices of 32'
  says action reboot
  rm -r "$ULTRACLUSTER_ROOT"/sys/class/infiniband/rdmap*
  finds critical none efa
}

@test "efa: devices of other drivers do not count, and more than the least is right" {
  mkdir -p "$ULTRACLUSTER_ROOT/sys/bus/pci/drivers/mlx5_core"
  efa_device mlx5_0 mlx5_core
  finds ok ok efa quick '32 EFA devices'
  facts NODE_EFA_INTERFACES=4
  finds ok ok efa
}

@test "efa: a port that is down" {
  echo '1: DOWN' >"$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap20s0/ports/1/state"
  finds critical down efa quick "the port of rdmap20s0 is '1: DOWN'"
}

@test "efa: counters that rise are told, and many warn" {
  local -r counter=$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap20s0/ports/1/hw_counters/rx_drops
  finds ok ok efa
  echo 7 >"$counter"
  finds ok ok efa quick 'errors: rdmap20s0 rx_drops rose by 7'
  finds ok ok efa
  echo 90000000 >"$counter"
  finds warn errors efa quick 'rdmap20s0 rx_drops rose by'
  # a device that was reset counts from 0
  echo 5 >"$counter"
  finds ok ok efa quick 'rose by 5'
}

@test "efa: malformed counters and state, an unknown type, nodes without" {
  local text
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$ULTRACLUSTER_ROOT/sys/class/infiniband/rdmap20s0/ports/1/hw_counters/rx_drops"
    printf '%s\n' "$text" >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/efa.state"
    finds ok ok efa
    finds ok ok efa
  done < <(some_garbage)
  facts NODE_EFA_INTERFACES=many
  finds unknown expected efa
  facts NODE_EFA_INTERFACES=
  is_not_for_this_node efa
  facts NODE_EFA_INTERFACES=0
  is_not_for_this_node efa
}

# --- lustre ---

@test "lustre: it takes a file and gives it back" {
  finds ok ok lustre quick '/fsx answers'
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/fsx" -type f)"
}

@test "lustre: not mounted, or something else there" {
  sed -i 's/ - lustre / - nfs4 /' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  finds critical unmounted lustre quick '/fsx is not a Lustre mount, but nfs4'
  says action none
  sed -i '/fsx/d' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  finds critical unmounted lustre
}

@test "lustre: what an earlier look left, and a folder of somebody else" {
  mkdir "$ULTRACLUSTER_ROOT/fsx/.ultracluster-health"
  echo old >"$ULTRACLUSTER_ROOT/fsx/.ultracluster-health/node.99999999"
  echo other >"$ULTRACLUSTER_ROOT/fsx/.ultracluster-health/other-node.99999999"
  finds ok ok lustre
  assert::equal other-node.99999999 "$(ls -A "$ULTRACLUSTER_ROOT/fsx/.ultracluster-health")"
  rm -r "$ULTRACLUSTER_ROOT/fsx/.ultracluster-health"
  mkdir "$ULTRACLUSTER_ROOT/elsewhere"
  ln -s ../elsewhere "$ULTRACLUSTER_ROOT/fsx/.ultracluster-health"
  finds unknown unwritable lustre
  assert::equal '' "$(ls -A "$ULTRACLUSTER_ROOT/elsewhere")"
}

@test "lustre: looks at the same time do not disturb each other" {
  local index
  for index in 1 2 3 4 5 6; do
    on_node "$SCRIPTS/lib/run_check.sh" lustre quick 10 >"$SANDBOX/look.$index" &
  done
  wait
  assert::equal 6 "$(cat "$SANDBOX"/look.* | grep -c '"result": "ok"')"
  assert::equal '' "$(find "$ULTRACLUSTER_ROOT/fsx" -type f)"
}

@test "lustre: another look makes the folder first" {
  prints mkdir "mkdir: cannot create directory: File exists" 1
  # shellcheck disable=SC2016 # of that script
  sed -i '2i [[ $* != *ultracluster-health ]] || "$REAL/mkdir" "$@"' "$SANDBOX/bin/mkdir"
  finds_with_mkdir ok ok
}

@test "lustre: a full file system and one that takes no files" {
  prints mkdir 'mkdir: cannot create directory: Read-only file system' 1
  finds_with_mkdir critical readonly
  prints mkdir 'mkdir: cannot create directory: Disk quota exceeded' 1
  finds_with_mkdir warn full
  prints mkdir 'mkdir: cannot create directory: Permission denied' 1
  finds_with_mkdir unknown unwritable
}

# run_check.sh makes folders, too: those of this test come first.
finds_with_mkdir() {
  sed -i "s#^printf#[[ \$* == *ultracluster-health ]] || exec \"\$REAL/mkdir\" \"\$@\"\nprintf#" "$SANDBOX/bin/mkdir"
  finds "$1" "$2" lustre
}

@test "lustre: over EFA where that is configured" {
  facts LUSTRE_EFA=yes
  mkdir -p "$FAKE/lnet"
  echo 8 >"$FAKE/lnet/efa"
  finds ok ok lustre
  echo 0 >"$FAKE/lnet/efa"
  finds warn tcp lustre quick 'Lustre uses TCP although EFA is configured'
  facts NODE_LUSTRE_EFA_INTERFACES=0
  finds ok ok lustre
  facts NODE_LUSTRE_EFA_INTERFACES=8
  hangs lnetctl
  finds unknown late lustre
  is_absent lnetctl
  finds unknown absent lustre
}

@test "lustre: a file system that does not answer is unknown, then a fault" {
  # what asks it hangs, as `cat` here
  hangs cat
  LOOK_SECONDS=0.5 finds unknown late lustre
  LOOK_SECONDS=0.5 DEAD_SECONDS=0 finds critical silent lustre
  says action none
}

@test "lustre: minutes of silence while the file system is changed are no fault yet" {
  local now
  hangs cat
  read -r now _ </proc/uptime
  for seconds in 200 400; do
    echo "$((${now%.*} * 1000 - seconds * 1000))" >"$ULTRACLUSTER_ROOT/run/ultracluster/health/lustre.late"
    if ((seconds < 300)); then LOOK_SECONDS=0.5 finds unknown late lustre; else LOOK_SECONDS=0.5 finds critical silent lustre; fi
  done
}

@test "lustre: nodes without, and Kubernetes, where pods mount" {
  facts LUSTRE_PATH=
  is_not_for_this_node lustre
  facts LUSTRE_PATH=/fsx NODE_FAMILY=hyperpod-eks
  is_not_for_this_node lustre
}

# --- disks ---

nvme_device() {
  local -r folder=$ULTRACLUSTER_ROOT/sys/class/nvme/nvme$1
  mkdir -p "$folder"
  printf '%-40s\n' "$2" >"$folder/model"
  echo live >"$folder/state"
}

@test "disks: room, write access and all local disks" {
  finds ok ok disks quick '8 local disks'
}

@test "disks: a file system that made itself read-only" {
  sed -i 's#ext4 /dev/root rw#ext4 /dev/root ro,errors=remount-ro#' "$ULTRACLUSTER_ROOT/proc/self/mountinfo"
  finds critical readonly disks quick '/ (ext4) is read-only'
  says action reboot
}

@test "disks: full, nearly full, and small ones that may be" {
  prints df $'    Avail      Size Mounted on\n 1000 100000000 /'
  finds critical full disks quick '/ has 0 MiB left'
  prints df $'    Avail      Size Mounted on\n 4000000 100000000 /\n 10 500000 /run'
  finds warn low disks quick '/ has 3 GiB of 95 left'
  # what a job has filled, jobs empty: no node is held for it
  prints df $'    Avail      Size Mounted on\n 90000000 100000000 /\n 0 100000000 '"$ULTRACLUSTER_ROOT/scratch"
  finds warn low disks quick '/scratch has 0 GiB of 95 left'
  prints df $'    Avail      Size Mounted on\n 90000000 100000000 /\n 10 500000 /run'
  finds ok ok disks
}

@test "disks: a local disk that is missing or given up" {
  rm -r "$ULTRACLUSTER_ROOT/sys/class/nvme/nvme4"
  finds warn missing disks quick '7 local disks of 8'
  says when_idle reboot
  echo dead >"$ULTRACLUSTER_ROOT/sys/class/nvme/nvme5/state"
  finds critical state disks quick "nvme5 is 'dead'"
}

@test "disks: malformed, hung, absent" {
  local text
  while IFS= read -r text; do
    prints df "$text"
    finds unknown unread disks
  done < <(some_garbage && echo '90000000 100000000' && echo '90000000 100000000 ')
  hangs df
  finds unknown unread disks
  is_absent df
  finds unknown unread disks
  facts NODE_FAMILY=eks-al2023
  is_not_for_this_node disks
}

@test "disks: what they say of themselves" {
  prints nvme $'Smart Log for NVME device:nvme1 namespace-id:ffffffff\ncritical_warning                        : 0'
  finds ok ok disks idle
  prints nvme 'critical_warning                        : 0x4'
  finds warn worn disks idle
  prints nvme 'NVMe status: INVALID_OPCODE' 1
  finds ok ok disks idle
  is_absent nvme
  finds unknown absent disks idle
}

# --- neuron ---

neuron_node() {
  local index
  facts NODE_ACCELERATOR=neuron NODE_ACCELERATOR_NAME=Trainium2 NODE_ACCELERATORS=16 NODE_INSTANCE_TYPE=trn2.48xlarge
  mkdir -p "$ULTRACLUSTER_ROOT/sys/module/neuron"
  for ((index = 0; index < 16; index++)); do
    mkdir -p "$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron$index/stats/hardware"
    counts "$index" sram_ecc_uncorrected 0
    counts "$index" mem_ecc_uncorrected 0
    counts "$index" mem_ecc_repairable_uncorrected 0
  done
}

counts() { echo "$3" >"$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron$1/stats/hardware/$2"; }

@test "neuron: all devices, without errors" {
  neuron_node
  finds ok ok neuron quick '16 Neuron devices'
}

@test "neuron: fewer devices, and no driver" {
  neuron_node
  rm -r "$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron7"
  finds critical missing neuron quick '15 Neuron devices of 16'
  rm -r "$ULTRACLUSTER_ROOT"/sys/devices/virtual/neuron_device/* "$ULTRACLUSTER_ROOT/sys/module/neuron"
  finds critical driver neuron
  says action reboot
}

@test "neuron: errors, by what AWS says to do" {
  neuron_node
  counts 3 mem_ecc_repairable_uncorrected 1
  finds warn hbm_repairable neuron quick 'neuron3: 1 of mem_ecc_repairable_uncorrected'
  says when_idle reboot
  counts 4 mem_ecc_uncorrected 2
  finds critical hbm neuron
  says action replace
  says gpu neuron4
  counts 4 mem_ecc_uncorrected 0
  counts 5 sram_ecc_uncorrected 1
  finds critical sram neuron
}

@test "neuron: an unknown accelerator drains nothing" {
  neuron_node
  facts NODE_ACCELERATOR_NAME=Trainium99
  counts 5 sram_ecc_uncorrected 1
  finds unknown row neuron
  rm -r "$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron5"
  finds warn missing neuron
}

@test "neuron: files of another driver, malformed ones, other nodes" {
  local text
  neuron_node
  while IFS= read -r text; do
    counts 3 mem_ecc_uncorrected "$text"
    finds ok ok neuron
  done < <(some_garbage)
  rm -r "$ULTRACLUSTER_ROOT"/sys/devices/virtual/neuron_device/neuron*/stats
  finds ok ok neuron quick 'whose driver tells no errors'
  mkdir -p "$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron3/hardware/ecc"
  echo 2 >"$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device/neuron3/hardware/ecc/mem_ecc_uncorrected"
  finds critical hbm neuron
  facts NODE_ACCELERATOR=nvidia
  is_not_for_this_node neuron
}

# --- time_sync ---

chrony() {
  prints chronyc "$1,169.254.169.123,4,$2.123456789,$3,-0.000001,0.00001,1.0,0.0,0.1,0.0002,0.0003,16.1,$4"
}

@test "time_sync: the clock follows its source" {
  finds ok ok time_sync quick 'the clock follows 169.254.169.123, 0 ms off'
}

@test "time_sync: wrong by a second, by minutes, without a source" {
  chrony A9FEA97B "$(date +%s)" 1.500000000 Normal
  finds warn drift time_sync quick 'wrong by 1500 ms'
  chrony A9FEA97B "$(date +%s)" -300.250000000 Normal
  finds critical wrong time_sync quick 'wrong by 300 s'
  says action none
  chrony 00000000 0 0.000000000 'Not synchronised'
  finds warn unsynchronised time_sync quick 'chrony has no source'
  chrony A9FEA97B "$(($(date +%s) - 7200))" 0.000000000 Normal
  finds warn unsynchronised time_sync quick 'has not answered for 120 min'
}

@test "time_sync: without chrony by systemd, malformed, hung" {
  local text
  is_absent chronyc
  prints timedatectl yes
  finds ok ok time_sync
  prints timedatectl no
  finds warn unsynchronised time_sync
  hangs timedatectl
  finds unknown unread time_sync
  is_absent timedatectl
  while IFS= read -r text; do
    prints chronyc "$text"
    finds unknown unread time_sync
  done < <(some_garbage)
  prints chronyc 'a,b,c,d,much,f,g,h,i,j,k,l,m,n'
  finds unknown malformed time_sync
  hangs chronyc
  finds unknown unread time_sync
}
