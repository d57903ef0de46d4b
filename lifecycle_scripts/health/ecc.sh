# shellcheck shell=bash
# Memory of GPUs: remapped rows, and errors that could not be corrected. What an error did to programs is told by XIDs.
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

ecc::applies() { gpu::applies; }

ecc::quick() {
  local row index uuid mode errors before boot kept='' old='' mig='' said=''
  gpu::answers || return 0
  health::boot boot
  health::kept old ecc
  # Counters begin again with each boot.
  [[ $old == "$boot"$'\n'* ]] || old=
  for row in "${GPU_ROWS[@]}"; do
    gpu::field index "$row" index
    gpu::field uuid "$row" uuid
    gpu::field mode "$row" ecc.mode.current
    [[ $mode != Disabled ]] || health::fault off "ECC of GPU $index is switched off" "$index"
    gpu::field mode "$row" mig.mode.current
    [[ $mode != Enabled ]] || mig=yes
    gpu::field errors "$row" ecc.errors.uncorrected.volatile.total
    [[ $errors =~ ^[0-9]{1,18}$ ]] || continue
    kept+="$uuid $errors"$'\n'
    before=0
    [[ $old != *$'\n'"$uuid "* ]] || { before=${old##*$'\n'"$uuid "} && before=${before%%$'\n'*}; }
    [[ $before =~ ^[0-9]{1,18}$ ]] || before=0
    ((errors <= before)) || health::fault uncorrectable "GPU $index: $((errors - before)) uncorrectable errors since the last look, $errors since the driver was loaded" "$index"
  done
  health::keep ecc "$boot"$'\n'"$kept"
  ecc::remapped
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "no new uncorrectable error, no row waits for its remap${said}"
}

# Pre-Ampere GPUs have no such rows, and with MIG instances the question fails: neither is a fault.
ecc::remapped() {
  local line bus pending failure rows=0
  health::tool "${ULTRACLUSTER_HEALTH_TOOL_SECONDS:-1.6}" nvidia-smi \
    --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader,nounits
  while IFS= read -r line; do
    IFS=',' read -r bus pending failure <<<"${line//[[:space:]]/}"
    [[ $bus =~ ^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$ ]] || continue
    rows=$((rows + 1))
    [[ $failure != @(Yes|1) ]] || health::fault remap_failure "$bus: a row could not be remapped" "$bus"
    [[ $pending != @(Yes|1) ]] || health::fault remap_pending "$bus: a row waits for its remap" "$bus"
    [[ $pending == @(Yes|No|0|1|'[N/A]'|N/A|'[NotSupported]') ]] || health::unknown malformed "$bus: whether a row waits is '$pending'"
  done <<<"$TOOL_TEXT"
  ((rows == 0)) || return 0
  if ((TOOL_STATUS == 124)); then
    health::unknown late "nvidia-smi does not answer in time what rows are remapped"
  elif [[ -n $mig ]]; then
    said=' (of GPUs with MIG instances the driver does not tell)'
  else
    health::unknown unread "nvidia-smi (status $TOOL_STATUS) does not tell which rows are remapped: ${TOOL_TEXT:0:200}"
  fi
}

# So many errors of SRAM that NVIDIA replaces the GPU (from H100 on); nvidia-smi takes long for it.
ecc::idle() {
  local line gpu='' seen=''
  health::tool 60 nvidia-smi -q -d ECC
  while IFS= read -r line; do
    if [[ $line =~ ^GPU\ ([0-9A-Fa-f:.]+) ]]; then
      gpu=${BASH_REMATCH[1]}
    elif [[ $line =~ SRAM\ Threshold\ Exceeded\ +:\ (Yes|No) ]]; then
      seen=yes
      [[ ${BASH_REMATCH[1]} == No ]] || health::fault sram_threshold "$gpu: SRAM threshold exceeded" "$gpu"
    fi
  done <<<"$TOOL_TEXT"
  if [[ -n $seen ]]; then
    [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "no threshold of SRAM errors is reached"
  elif ((TOOL_STATUS == 0)); then
    health::ok "these GPUs have no threshold of SRAM errors"
  else
    health::unknown unread "nvidia-smi ended with status $TOOL_STATUS: ${TOOL_TEXT:0:200}"
  fi
}
