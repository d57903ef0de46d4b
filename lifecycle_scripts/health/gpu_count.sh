# shellcheck shell=bash
# Are all GPUs there, does each answer, and does the driver ask for something to be done with one?
for library in health_gpu devices; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

# What the driver calls its recovery actions (NVML, nvmlDeviceGpuRecoveryAction_t), and their rows
declare -rA GPU_COUNT_RECOVERY=(['Reset']=recovery_reset ['GPU Reset Required']=recovery_reset ['Reboot']=recovery_reboot
  ['Node Reboot Required']=recovery_reboot ['Drain P2P']=recovery_drain ['Drain and Reset']=recovery_drain)

gpu_count::applies() { gpu::applies; }

gpu_count::quick() {
  local row index action=''
  gpu::ask
  case $GPU_STATUS in
    127) health::unknown absent "there is no nvidia-smi on this node" && return ;;
    124) health::unknown late "nvidia-smi does not answer in time" && return ;;
  esac
  for row in ${GPU_ROWS[@]+"${GPU_ROWS[@]}"}; do
    gpu::field index "$row" index
    gpu_count::torn "$row" "$index"
    gpu::field action "$row" gpu_recovery_action
    [[ -n $action && $action != None ]] || continue
    if [[ -v GPU_COUNT_RECOVERY["$action"] ]]; then
      health::fault "${GPU_COUNT_RECOVERY["$action"]}" "the driver asks for '$action' of GPU $index" "$index"
    else
      health::unknown recovery "the driver asks for '$action' of GPU $index, which no list knows"
    fi
  done
  gpu_count::failed
  gpu_count::missing
  [[ -z ${NODE_MIG:-} || -n $(<"$HEALTH_FOUND") ]] || gpu_count::instances
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "${#GPU_ROWS[@]} GPUs answer"
}

# Instances that somebody destroyed by hand: Slurm would give them to jobs, which then start without a device.
gpu_count::instances() {
  health::tool 10 "$ULTRACLUSTER_ROOT/usr/local/sbin/ultracluster-mig" status
  case $TOOL_STATUS:$TOOL_TEXT in
    0:ready*) health::ok "all answer, cut by MIG: ${TOOL_TEXT#ready }" ;;
    0:absent*) health::fault instances "${TOOL_TEXT#absent }" ;;
    124:*) health::unknown late "nvidia-smi does not list the MIG instances in time" ;;
    *) health::unknown instances "the MIG instances cannot be listed (status $TOOL_STATUS): ${TOOL_TEXT:0:200}" ;;
  esac
}

# gpu_count::torn ROW INDEX: what nvidia-smi has in place of a value of a GPU that is gone or stuck
gpu_count::torn() {
  case $1 in
    *'[GPU is lost]'*) health::fault lost "GPU $2 is lost" "$2" ;;
    *'[GPU requires reset]'*) health::fault recovery_reset "GPU $2 requires a reset" "$2" ;;
    *'[Unknown Error]'* | *ERR!*) health::fault error "a value of GPU $2 cannot be read: $1" "$2" ;;
  esac
}

# A question that ends with an error. One that is not supported is none.
gpu_count::failed() {
  ((GPU_STATUS != 0)) || return 0
  if [[ $GPU_SAID == *'GPU is lost'* || $GPU_SAID == *'fallen off the bus'* || $GPU_SAID == *'Unable to determine the device handle'* ]]; then
    health::fault lost "nvidia-smi (status $GPU_STATUS): $GPU_SAID"
  elif [[ $GPU_SAID == *'version mismatch'* ]]; then
    health::fault mismatch "nvidia-smi (status $GPU_STATUS): $GPU_SAID"
  elif [[ -v GPU_EXITS[$GPU_STATUS] ]]; then
    health::fault "${GPU_EXITS[$GPU_STATUS]}" "nvidia-smi (status $GPU_STATUS): ${GPU_SAID:-it says nothing}"
  else
    health::unknown unread "nvidia-smi ended with status $GPU_STATUS: ${GPU_SAID:-it says nothing}"
  fi
}

# By cluster.json, which has the number of the type; where it does not tell, by the PCI bus.
gpu_count::missing() {
  local expected=${NODE_ACCELERATORS:-} where="cluster.json" bus
  ((GPU_STATUS == 0 || ${#GPU_ROWS[@]} > 0)) || return 0
  if [[ ${GPU_STATUS} == 0 && ${#GPU_ROWS[@]} == 0 && $GPU_SAID != *'No devices were found'* ]]; then
    health::unknown malformed "what nvidia-smi printed is no list of GPUs: ${GPU_SAID:0:200}"
    return 0
  fi
  bus=$(devices::on_bus nvidia)
  [[ $expected =~ ^[1-9][0-9]*$ ]] || { expected=$bus where="the PCI bus"; }
  if ((${#GPU_ROWS[@]} < expected)); then
    if [[ -n $GPU_SAID && $GPU_SAID != *'No devices were found'* ]]; then
      health::unknown malformed "${#GPU_ROWS[@]} of $expected GPUs, and lines that are no list: ${GPU_SAID:0:200}"
    else
      health::fault missing "${#GPU_ROWS[@]} GPUs answer, $where has $expected; the PCI bus shows $bus"
    fi
  elif ((${#GPU_ROWS[@]} > expected)); then
    health::fault more "${#GPU_ROWS[@]} GPUs answer, $where has $expected"
  fi
}
