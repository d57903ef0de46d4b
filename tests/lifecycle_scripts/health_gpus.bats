#!/usr/bin/env bats
# What GPUs tell of themselves: memory, links, fabric, clocks, persistence, DCGM.

load helpers
load health

healthy() {
  local index
  mkdir -p "$FAKE/gpus/links" "$FAKE/units/nvidia-fabricmanager" "$ULTRACLUSTER_ROOT/proc/driver/nvidia"
  for index in 0 1 2 3 4 5 6 7; do links "$index" 18 0; done >"$FAKE/gpus/links/text"
  prints systemctl ''
  systemd active
}

# links GPU UP DOWN: as nvidia-smi nvlink --status prints them
links() {
  local link
  echo "GPU $1: NVIDIA H100 80GB HBM3 (UUID: GPU-0123-$1)"
  for ((link = 0; link < $2; link++)); do printf '\t Link %s: 26.562 GB/s\n' "$link"; done
  for ((link = $2; link < $2 + $3; link++)); do printf '\t Link %s: <inactive>\n' "$link"; done
}

# systemd STATE [IMEX]: what systemctl says of nvidia-fabricmanager, of nvidia-imex, and of slurmd's process
systemd() {
  cat >"$SANDBOX/bin/systemctl" <<BASH
#!/bin/bash
case \$* in
  'cat nvidia-fabricmanager.service') [[ "$1" != none ]] ;;
  *ActiveState*nvidia-fabricmanager*) echo "$1" ;;
  *ActiveState*nvidia-imex*) echo "${2:-inactive}" ;;
  *MainPID*slurmd*) echo 4711 ;;
esac
BASH
}

# --- ecc ---

@test "ecc: no error, and rows that are not told" {
  local said
  finds ok ok ecc quick 'no new uncorrectable error'
  mkdir -p "$FAKE/gpus/remapped"
  for said in '00000000:53:00.0, [N/A], [N/A]' '00000000:53:00.0, No, No' '00000000:53:00.0, 0, 0'; do
    echo "$said" >"$FAKE/gpus/remapped/text"
    finds ok ok ecc
  done
}

@test "ecc: a row that waits is repaired when no job runs, one that failed ends the node" {
  gpu 2 remapped_rows.pending Yes
  finds warn remap_pending ecc quick '00000000:55:00.0: a row waits'
  says action none
  says when_idle reset
  gpu 5 remapped_rows.failure 1
  finds critical remap_failure ecc quick 'could not be remapped; remap_pending'
  says action replace
  says gpu 00000000:58:00.0
}

@test "ecc: new errors are told once, and again after a boot" {
  gpu 4 ecc.errors.uncorrected.volatile.total 3
  finds warn uncorrectable ecc quick 'GPU 4: 3 uncorrectable errors since the last look'
  finds ok ok ecc
  gpu 4 ecc.errors.uncorrected.volatile.total 5
  finds warn uncorrectable ecc quick 'GPU 4: 2 uncorrectable errors'
  finds ok ok ecc
  echo another-boot >"$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
  finds warn uncorrectable ecc quick 'GPU 4: 5 uncorrectable'
}

@test "ecc: a state that is damaged begins anew" {
  local text
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/ecc.state"
    finds ok ok ecc
  done < <(some_garbage)
}

@test "ecc: switched off" {
  gpu 0 ecc.mode.current Disabled
  finds warn off ecc
  gpu 0 ecc.mode.current '[N/A]'
  finds ok ok ecc
}

@test "ecc: MIG, for which drivers do not tell rows" {
  mkdir -p "$FAKE/gpus/remapped"
  echo 'Unable to query remapped rows: Not Supported' >"$FAKE/gpus/remapped/text"
  echo 3 >"$FAKE/gpus/status"
  finds unknown unread ecc
  gpu 1 mig.mode.current Enabled
  echo 0 >"$FAKE/gpus/status"
  finds ok ok ecc quick 'with MIG instances the driver does not tell'
}

@test "ecc: malformed answers, no answer, no tool" {
  local text
  mkdir -p "$FAKE/gpus/remapped"
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$FAKE/gpus/remapped/text"
    finds unknown unread ecc
  done < <(some_garbage)
  echo '00000000:53:00.0, Perhaps, No' >"$FAKE/gpus/remapped/text"
  finds unknown malformed ecc
  touch "$FAKE/gpus/hangs"
  TOOL_SECONDS=0.2 finds unknown late ecc
  is_absent nvidia-smi
  finds unknown absent ecc
}

@test "ecc: the threshold of SRAM errors" {
  mkdir -p "$FAKE/gpus/ecc"
  printf 'GPU 00000000:53:00.0\n    ECC Errors\n        Aggregate\n            SRAM Threshold Exceeded           : No\n' >"$FAKE/gpus/ecc/text"
  finds ok ok ecc idle 'no threshold'
  sed -i 's/: No/: Yes/' "$FAKE/gpus/ecc/text"
  finds critical sram_threshold ecc idle
  says action replace
  echo 'GPU 00000000:53:00.0' >"$FAKE/gpus/ecc/text"
  finds ok ok ecc idle 'have no threshold'
  echo 9 >"$FAKE/gpus/status"
  finds unknown unread ecc idle
}

# --- nvlink ---

@test "nvlink: all links are up" {
  finds ok ok nvlink quick '8 GPUs with 18 links each'
}

@test "nvlink: a link is down" {
  { links 0 18 0 && links 1 17 1; } >"$FAKE/gpus/links/text"
  finds critical inactive nvlink quick 'GPU 1: 1 links are down, 17 are up'
  says action reset
  says gpu 1
}

@test "nvlink: all links of a GPU are down" {
  { links 0 18 0 && links 1 0 0 && echo '   NVML: Unable to retrieve NVLink information as all links are inActive'; } >"$FAKE/gpus/links/text"
  finds critical inactive nvlink quick 'GPU 1: all links are down'
}

@test "nvlink: fewer than the generation has; of an unknown one it is a warning" {
  { links 0 18 0 && links 1 12 0; } >"$FAKE/gpus/links/text"
  finds critical fewer nvlink quick 'GPU 1: 12 links of 18'
  facts NODE_ACCELERATOR_NAME=H999
  finds warn fewer nvlink quick 'GPU 1: 12 links of 18'
  says fault nvlink-other
  facts NODE_ACCELERATOR_NAME=A100
  { links 0 12 0 && links 1 12 0; } >"$FAKE/gpus/links/text"
  finds ok ok nvlink
}

@test "nvlink: MIG uses none" {
  { links 0 0 0 && echo 'all links are inActive'; } >"$FAKE/gpus/links/text"
  gpu 0 mig.mode.current Enabled
  finds ok ok nvlink quick MIG
}

@test "nvlink: malformed, hung, absent, and nodes without" {
  local text
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$FAKE/gpus/links/text"
    finds unknown unread nvlink
  done < <(some_garbage)
  printf 'GPU 0: NVIDIA H100\n\t Link 0: fast\n' >"$FAKE/gpus/links/text"
  finds unknown malformed nvlink
  # a line that is torn is no link that is missing
  { links 0 17 0 && printf '\t Link 17: 26.5' && echo && links 1 18 0; } >"$FAKE/gpus/links/text"
  finds unknown malformed nvlink quick 'GPU 0: 17 links of 18, and lines that cannot be read'
  touch "$FAKE/gpus/hangs"
  TOOL_SECONDS=0.2 finds unknown late nvlink
  is_absent nvidia-smi
  finds unknown absent nvlink
  facts NODE_NVSWITCH=no
  is_not_for_this_node nvlink
  facts NODE_NVSWITCH=
  is_not_for_this_node nvlink
}

# --- fabric_manager ---

@test "fabric_manager: it runs" {
  finds ok ok fabric_manager quick 'the fabric manager runs'
}

@test "fabric_manager: states of its unit" {
  local state result code
  while read -r state result code; do
    systemd "$state"
    finds "$result" "$code" fabric_manager
  done <<'TABLE'
failed critical down
inactive critical down
activating warn starting
reloading ok ok
nonsense unknown unread
none unknown absent
TABLE
}

@test "fabric_manager: another version than the driver is told with it" {
  systemd failed
  echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build' >"$ULTRACLUSTER_ROOT/proc/driver/nvidia/version"
  prints nv-fabricmanager 'Fabric Manager version is : 580.82.07'
  finds critical down fabric_manager quick 'the fabric manager is 580.82.07, the driver 580.95.05'
}

@test "fabric_manager: the fabric as GPUs see it" {
  gpu 6 fabric.status 'Failure'
  finds critical fabric fabric_manager quick "GPU 6: fabric is completed with status 'Failure'"
  gpu 6 fabric.status "Succ\$ess"
  finds unknown malformed fabric_manager
  gpu 6 fabric.status Success
  gpu 6 fabric.state 'In Progress'
  finds warn starting fabric_manager
  gpu 6 fabric.state 'Not Supported'
  finds ok ok fabric_manager
  gpu 6 fabric.state 'Something'
  finds unknown fabric fabric_manager
}

@test "fabric_manager: IMEX of an UltraServer" {
  facts NODE_NVSWITCH=no NODE_IMEX=yes NODE_ACCELERATOR_NAME=GB200
  finds ok ok fabric_manager
  systemd active failed
  finds warn imex fabric_manager
}

@test "fabric_manager: hung, absent, other nodes" {
  hangs systemctl
  finds unknown late fabric_manager
  is_absent systemctl
  finds unknown absent fabric_manager
  facts NODE_NVSWITCH=no
  is_not_for_this_node fabric_manager
}

# --- clocks ---

@test "clocks: nothing slows GPUs down" {
  finds ok ok clocks
}

@test "clocks: what slows a GPU down warns, and no more" {
  local field
  for field in hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown; do
    gpu 7 "clocks_event_reasons.$field" Active
    finds warn slowdown clocks quick "GPU 7 is slowed down by hardware: $field (31 °C)"
    gpu 7 "clocks_event_reasons.$field" 'Not Active'
  done
  gpu 7 clocks_event_reasons.sw_thermal_slowdown Active
  finds warn thermal clocks
}

@test "clocks: a GPU that is slower than its peers under load" {
  local index
  for index in 0 1 2 3 4 5 6 7; do
    gpu "$index" clocks.current.sm 1900
    gpu "$index" utilization.gpu 99
  done
  finds ok ok clocks
  gpu 3 clocks.current.sm 300
  finds warn low clocks quick 'GPU 3 runs at 300 MHz, its fastest peer at 1900 MHz'
  gpu 3 utilization.gpu 0
  finds ok ok clocks
}

@test "clocks: a driver that does not tell, malformed, hung, absent" {
  local text
  printf 'clocks_event_reasons.%s\n' hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown sw_thermal_slowdown >"$FAKE/gpus/lacks"
  finds unknown untold clocks
  rm "$FAKE/gpus/lacks"
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$FAKE/gpus/text"
    finds unknown unread clocks
  done < <(some_garbage)
  touch "$FAKE/gpus/hangs"
  TOOL_SECONDS=0.2 finds unknown late clocks
  is_absent nvidia-smi
  finds unknown absent clocks
}

# --- limits ---

slurmd_may_lock() {
  mkdir -p "$ULTRACLUSTER_ROOT/proc/4711"
  printf 'Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         %-20s %-20s bytes\n' "$1" "$1" >"$ULTRACLUSTER_ROOT/proc/4711/limits"
}

@test "limits: what slurmd may lock" {
  slurmd_may_lock unlimited
  finds ok ok limits
  slurmd_may_lock 17179869184
  finds ok ok limits
  slurmd_may_lock 65536
  finds critical memlock limits quick 'slurmd may lock 65536 bytes'
  says action none
  slurmd_may_lock lots
  finds unknown malformed limits
  rm -r "$ULTRACLUSTER_ROOT/proc/4711"
  finds unknown unread limits
  facts NODE_EFA_INTERFACES=0
  finds ok ok limits
}

@test "limits: persistence mode" {
  slurmd_may_lock unlimited
  gpu 0 persistence_mode Disabled
  finds warn persistence limits
  gpu 0 persistence_mode '[N/A]'
  finds ok ok limits
}

@test "limits: hung and absent tools, other nodes" {
  hangs systemctl
  finds ok ok limits
  is_absent systemctl
  is_absent nvidia-smi
  finds ok ok limits
  facts NODE_ROLE=login
  is_not_for_this_node limits
}

# --- dcgm ---

diag() {
  prints dcgmi "$1" "${2:-0}"
}

readonly DIAG_PASSED='{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}, {"entity_group": "GPU", "entity_id": 1, "status": "Pass"}]}]}]}}'
readonly DIAG_ISOLATE='{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [{"entity_id": 0, "status": "Pass"}, {"entity_id": 5, "status": "Fail", "warnings": [{"error_id": 4, "error_severity": 2, "warning": "GPU 5 has uncorrectable memory errors"}]}]}]}]}}'
readonly DIAG_OLD='{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": [{"name": "PCIe", "results": [{"gpu_ids": "0,1", "status": "Fail", "warnings": ["slow link"]}]}]}]}}'

@test "dcgm: the result of the idle look is told by the quick one" {
  finds ok ok dcgm quick 'no result'
  diag "$DIAG_PASSED"
  finds ok ok dcgm idle 'passed 0 min ago'
  finds ok ok dcgm quick 'passed 0 min ago'
  diag "$DIAG_ISOLATE" 226
  finds critical isolate dcgm idle 'memory 5: GPU 5 has uncorrectable memory errors'
  finds critical isolate dcgm quick 'memory 5'
  says action none
  echo another-boot >"$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
  finds ok ok dcgm quick 'no result of this boot'
}

@test "dcgm: severities, and the form of DCGM 3" {
  diag "${DIAG_ISOLATE/\"error_severity\": 2/\"error_severity\": 6}"
  finds critical reset dcgm idle
  diag "${DIAG_ISOLATE/\"error_severity\": 2/\"error_severity\": \"DCGM_ERROR_ISOLATE\"}"
  finds critical isolate dcgm idle
  diag "${DIAG_ISOLATE/\"error_severity\": 2/\"error_severity\": 4}"
  finds warn fail dcgm idle
  diag "$DIAG_OLD"
  finds warn fail dcgm idle 'PCIe 0,1: slow link'
}

@test "dcgm: an error's number decides before its severity" {
  local -A wanted=([85]='warn pending' [55]='warn setting' [14]='critical links' [120]='critical isolate')
  local number
  for number in "${!wanted[@]}"; do
    diag "${DIAG_ISOLATE/\"error_id\": 4/\"error_id\": $number}"
    # shellcheck disable=SC2086 # two words
    finds ${wanted[$number]} dcgm idle
  done
  # a type without NVLinks
  facts NODE_ACCELERATOR_NAME=L40S
  diag "${DIAG_ISOLATE/\"error_id\": 4/\"error_id\": 14}"
  finds warn setting dcgm idle
}

@test "dcgm: an old result says nothing" {
  diag "$DIAG_ISOLATE"
  finds critical isolate dcgm idle
  sed -i -E '2s/.*/1700000000/' "$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/dcgm.state"
  finds ok ok dcgm quick
}

@test "dcgm: malformed, hung, absent" {
  local text
  while IFS= read -r text; do
    diag "$text" 1
    finds unknown malformed dcgm idle
  done < <(some_garbage && echo '{"a": [{"name": "x", "results": [{"status": 7}]}]}')
  hangs dcgmi
  run --separate-stderr on_node ULTRACLUSTER_HEALTH_DCGM_SECONDS=0.2 "$SCRIPTS/lib/run_check.sh" dcgm idle
  assert::contains "$output" '"code": "late"'
  is_absent dcgmi
  finds unknown absent dcgm idle
  while IFS= read -r text; do
    printf '%s\n' "$text" >"$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/dcgm.state"
    finds ok ok dcgm quick
  done < <(some_garbage)
}
