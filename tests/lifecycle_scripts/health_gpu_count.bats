#!/usr/bin/env bats
# Are all GPUs there, and does each answer? And what every look has in common: its time, its one line, its status.

load helpers
load health

@test "eight GPUs of eight answer" {
  finds ok ok gpu_count quick '8 GPUs answer'
  says verb quick
}

@test "a GPU that is missing" {
  echo 7 >"$FAKE/gpus/count"
  finds critical missing gpu_count quick '7 GPUs answer, cluster.json has 8'
  says action reboot
  says fault gpu_count-missing
}

@test "more GPUs than the type has are a warning: cluster.json is wrong" {
  facts NODE_ACCELERATORS=4
  finds warn more gpu_count quick '8 GPUs answer, cluster.json has 4'
}

@test "MIG instances that somebody took away are a fault, others are as the group has them" {
  mkdir -p "$ULTRACLUSTER_ROOT/usr/local/sbin" && cp "$SCRIPTS/files/mig.sh" "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-mig"
  chmod +x "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-mig"
  mkdir -p "$ULTRACLUSTER_ROOT/etc/ultracluster"
  facts NODE_ACCELERATORS=2 NODE_MIG='1g.10gb:0,1g.10gb:1 -'
  printf '%s\n' 1g.10gb:0,1g.10gb:1 - >"$ULTRACLUSTER_ROOT/etc/ultracluster/mig"
  echo 2 >"$FAKE/gpus/count"
  gpu 0 mig.mode.current Enabled
  printf '1g.10gb 0 1\n1g.10gb 1 1\n' >"$FAKE/gpus/0/mig"
  finds ok ok gpu_count quick 'cut by MIG: 2 GPUs: 1 x -; 1 x 1g.10gb:0,1g.10gb:1'
  sed -i 1d "$FAKE/gpus/0/mig"
  finds critical instances gpu_count quick 'with 1g.10gb instead of 1g.10gb 1g.10gb'
  says action reboot
  rm "$ULTRACLUSTER_ROOT/etc/ultracluster/mig"
  finds unknown instances gpu_count quick 'cannot be listed'
}

@test "a type that nobody knows is counted by the PCI bus" {
  local index
  facts NODE_ACCELERATORS= NODE_ACCELERATOR_NAME=
  for index in 0 1 2 3 4 5 6 7 8; do pci_device "$index" 0x10de 0x2330 0x030200; done
  finds critical missing gpu_count quick '8 GPUs answer, the PCI bus has 9'
}

pci_device() {
  local -r folder=$ULTRACLUSTER_ROOT/sys/bus/pci/devices/0000:0$1:00.0
  mkdir -p "$folder"
  echo "$2" >"$folder/vendor" && echo "$3" >"$folder/device" && echo "$4" >"$folder/class"
}

@test "what the driver asks for is done" {
  local action row wanted
  while IFS='|' read -r action row wanted; do
    gpu 3 gpu_recovery_action "$action"
    finds critical "$row" gpu_count quick "asks for '$action' of GPU 3"
    says action "$wanted"
    says gpu 3
  done <<'TABLE'
Reset|recovery_reset|reset
GPU Reset Required|recovery_reset|reset
Reboot|recovery_reboot|reboot
Node Reboot Required|recovery_reboot|reboot
Drain P2P|recovery_drain|reset
Drain and Reset|recovery_drain|reset
TABLE
  gpu 3 gpu_recovery_action 'Something New'
  finds unknown recovery gpu_count
  gpu 3 gpu_recovery_action '[N/A]'
  finds ok ok gpu_count
}

@test "a driver that does not know a field is asked without it" {
  printf '%s\n' gpu_recovery_action fabric.state fabric.status >"$FAKE/gpus/lacks"
  finds ok ok gpu_count quick '8 GPUs answer'
  echo 6 >"$FAKE/gpus/count"
  finds critical missing gpu_count
}

@test "a question that ends with an error is a fault, by its status" {
  local status said result code
  echo 0 >"$FAKE/gpus/count"
  while IFS='|' read -r status said result code; do
    echo "$said" >"$FAKE/gpus/text"
    echo "$status" >"$FAKE/gpus/status"
    finds "$result" "$code" gpu_count quick
  done <<'TABLE'
6|No devices were found|critical|none
8|External power cables are not attached|critical|power
9|NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.|critical|driver
14|WARNING: infoROM is corrupted at gpu 0000:53:00.0|warn|inforom
15|Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost. Reboot the system to recover this GPU|critical|lost
255|Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error|critical|lost
18|Failed to initialize NVML: Driver/library version mismatch|critical|mismatch
77|something new|unknown|unread
TABLE
}

@test "a GPU that is lost is told in its row" {
  gpu 2 temperature.gpu '[GPU is lost]'
  finds critical lost gpu_count quick 'GPU 2 is lost'
  gpu 2 temperature.gpu '[GPU requires reset]'
  finds critical recovery_reset gpu_count quick 'GPU 2 requires a reset'
  gpu 2 temperature.gpu '[Unknown Error]'
  finds warn error gpu_count
}

@test "output that is no list is unknown, and drains nothing" {
  local text
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$FAKE/gpus/text"
    look gpu_count
    assert::status 3
    says result unknown
  done < <(some_garbage)
}

@test "a tool that hangs is ended, and costs no more than its time" {
  touch "$FAKE/gpus/hangs"
  TOOL_SECONDS=0.2 finds unknown late gpu_count quick 'does not answer in time'
}

@test "a node without nvidia-smi" {
  is_absent nvidia-smi
  finds unknown absent gpu_count
}

@test "a node without GPUs is not looked at" {
  facts NODE_ACCELERATOR=neuron
  is_not_for_this_node gpu_count
  facts NODE_ACCELERATOR=none
  is_not_for_this_node gpu_count
}

@test "a verb that a check does not have" {
  is_not_for_this_node gpu_count idle
}

@test "checks that run side by side ask once" {
  local check
  for check in gpu_count clocks limits; do
    on_node "$SCRIPTS/lib/run_check.sh" "$check" quick >/dev/null &
  done
  wait
  assert::equal 1 "$(grep -c -- '--query-gpu' "$FAKE/calls")"
}

@test "what a tool leaves behind does not hold up the next check" {
  rm "$SANDBOX/bin/nvidia-smi"
  printf '#!/bin/bash\nsetsid sleep 3116 >/dev/null 2>&1 </dev/null &\necho "$!" >>"%s"\nexec -a nvidia-smi bash "%s" "$@"\n' "$FAKE/left" "$BATS_TEST_DIRNAME/fakes/nvidia-smi" >"$SANDBOX/bin/nvidia-smi"
  chmod 755 "$SANDBOX/bin/nvidia-smi"
  finds ok ok gpu_count
  finds ok ok clocks
  look limits
  [[ $LINE != *'"late"'* ]]
  xargs kill <"$FAKE/left"
}

@test "all checks of a node in order take less than the ten seconds of a prolog, even one after the other" {
  local check before after
  # of the processor, in hundredths: the ones before are those of this process, of which the children are the 16th and 17th
  read -ra before <"/proc/$$/stat"
  for check in "$SCRIPTS"/health/*.sh; do look "$(basename "$check" .sh)"; done
  read -ra after <"/proc/$$/stat"
  ((after[15] + after[16] - before[15] - before[16] < 1000))
}

# --- what holds for every look ---

# check CODE: a check of that code
check() {
  printf 'probe::applies() { :; }\nprobe::quick() {\n%s\n}\n' "$1" >"$SCRIPTS/health/probe.sh"
}

@test "a check that is broken is unknown" {
  check 'no_such_command_anywhere'
  finds unknown broken probe quick 'no_such_command_anywhere'
  check 'echo what is this'
  finds unknown silent probe
  check 'exit 2'
  finds unknown broken probe
  check 'health::fault nothing_of_the_kind "a fault without a row"'
  finds unknown row probe
  check 'health::row no-such-row "a row that is not there"'
  finds unknown row probe
}

@test "a check that does not end is ended with all that it started" {
  check 'trap "" TERM INT HUP; sleep 3117 & while :; do sleep 3118; done'
  LOOK_SECONDS=0.5 finds unknown late probe
  ! pgrep -f 'sleep 311[78]$' || { echo "something runs on" && return 1; }
}

@test "what does not answer for a minute is a fault where the table has a row, and only there" {
  check 'sleep 30'
  LOOK_SECONDS=0.2 DEAD_SECONDS=0 finds unknown late probe
  sed 's/probe::/lustre::/' "$SCRIPTS/health/probe.sh" >"$SCRIPTS/health/lustre.sh"
  LOOK_SECONDS=0.2 finds unknown late lustre
  LOOK_SECONDS=0.2 DEAD_SECONDS=0 finds critical silent lustre quick 'none for'
  says action none
  # an answer in between begins anew
  printf 'lustre::applies() { :; }\nlustre::quick() { health::ok well; }\n' >"$SCRIPTS/health/lustre.sh"
  finds ok ok lustre
  [[ ! -e $ULTRACLUSTER_ROOT/run/ultracluster/health/lustre.late ]]
}

@test "a process that the kernel does not end is not asked a second time" {
  local rest started
  # Nothing here can be made to hang in the kernel: a process that lives stands for it.
  sleep 60 &
  local -r pid=$!
  read -ra rest <"/proc/$pid/stat"
  started=${rest[21]}
  echo "$pid $started 0" >"$ULTRACLUSTER_ROOT/run/ultracluster/health/gpu_count.hung"
  DEAD_SECONDS=0 finds critical hung gpu_count quick "process $pid has hung"
  says action reboot
  DEAD_SECONDS=99999999 finds unknown hung gpu_count
  assert::never_called nvidia-smi
  # another process of that number
  echo "$pid 1 0" >"$ULTRACLUSTER_ROOT/run/ultracluster/health/gpu_count.hung"
  DEAD_SECONDS=0 finds ok ok gpu_count
  kill "$pid"
}

@test "a table that is damaged makes faults unknown" {
  echo 7 >"$FAKE/gpus/count"
  echo '{"faults": [' >"$SCRIPTS/health/faults.json"
  finds unknown row gpu_count
  rm "$SCRIPTS/health/faults.json"
  finds unknown row gpu_count
}

@test "without the facts of the boot a node is known by its type" {
  rm "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node"
  echo 7 >"$FAKE/gpus/count"
  finds critical missing gpu_count quick '7 GPUs answer, cluster.json has 8'
}

@test "the facts of a boot are kept for checks" {
  rm "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node"
  on_node bash -c "set -euo pipefail; ULTRACLUSTER_HOME=$SCRIPTS; source '$SCRIPTS/lib/log.sh'; source '$SCRIPTS/lib/node.sh'
    source '$SCRIPTS/lib/health.sh'; node::load; health::remember" 2>/dev/null
  local -r facts=$(<"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node")
  assert::contains "$facts" 'NODE_GROUP=gpu'
  assert::contains "$facts" 'NODE_ACCELERATOR_NAME=H100'
  assert::contains "$facts" 'LUSTRE_PATH=/fsx'
  finds ok ok gpu_count
}

@test "what a tool prints does not leave its line" {
  printf 'a "quote" \\ and\ta tab\n\033[31mred\n' >"$FAKE/gpus/text"
  finds unknown malformed gpu_count quick 'a "quote" \ and a tab'
}

@test "a wrong call says how it is called" {
  run on_node "$SCRIPTS/lib/run_check.sh" ../../etc/passwd quick
  assert::status 3
  assert::contains "$output" 'usage: run_check.sh CHECK quick|idle'
  run on_node "$SCRIPTS/lib/run_check.sh" gpu_count now
  assert::status 3
}
