# shellcheck shell=bash
# NVLink: does every GPU have all its links, and are they up?
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

nvlink::applies() { gpu::applies && [[ ${NODE_NVSWITCH:-} == yes || ${NODE_IMEX:-} == yes ]]; }

nvlink::quick() {
  local line gpu='' expected gpus=0 torn=''
  local -A active=() inactive=()
  health::tool "${ULTRACLUSTER_HEALTH_TOOL_SECONDS:-1.6}" nvidia-smi nvlink --status
  case $TOOL_STATUS in
    127) health::unknown absent "there is no nvidia-smi on this node" && return ;;
    124) health::unknown late "nvidia-smi nvlink does not answer in time" && return ;;
  esac
  # GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...), and below it: Link 0: 26.562 GB/s, or <inactive>
  while IFS= read -r line; do
    if [[ $line =~ ^GPU\ ([0-9]+): ]]; then
      gpu=${BASH_REMATCH[1]} gpus=$((gpus + 1))
      active[$gpu]=0 inactive[$gpu]=0
    elif [[ -n $gpu && $line =~ ^[[:space:]]*Link\ [0-9]+:\ *([0-9.]+)\ GB/s ]]; then
      active[$gpu]=$((active[$gpu] + 1))
    elif [[ -n $gpu && $line =~ ^[[:space:]]*Link\ [0-9]+:\ *\<inactive\> ]]; then
      inactive[$gpu]=$((inactive[$gpu] + 1))
    elif [[ -n $gpu && ${line,,} == *'links are inactive'* ]]; then
      inactive[$gpu]=all
    elif [[ -n ${line//[[:space:]]/} ]]; then
      torn=${torn:-${line:0:100}}
    fi
  done <<<"$TOOL_TEXT"
  if ((gpus == 0)); then
    health::unknown unread "nvidia-smi nvlink (status $TOOL_STATUS) shows no GPU: ${TOOL_TEXT:0:200}"
    return 0
  fi
  expected=$(nvlink::expected)
  nvlink::judge
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "$gpus GPUs with ${expected:-as many} links each, all up"
}

# Of the type; where that is not known, as many as the GPU of this node that has most
nvlink::expected() {
  local gpu most=0
  local -r known=$(python3 -ISB "$ULTRACLUSTER_HOME/health/faults.py" links "${NODE_ACCELERATOR_NAME:-}" 2>/dev/null)
  if [[ $known =~ ^[0-9]+$ ]]; then
    echo "$known"
    return
  fi
  for gpu in "${!active[@]}"; do ((active[$gpu] <= most)) || most=${active[$gpu]}; done
  echo "$most"
}

nvlink::judge() {
  local gpu row mig
  gpu::ask
  for row in ${GPU_ROWS[@]+"${GPU_ROWS[@]}"}; do
    gpu::field mig "$row" mig.mode.current
    [[ $mig != Enabled ]] || { health::ok "GPUs are divided by MIG, and then use no NVLink" && return; }
  done
  for gpu in "${!active[@]}"; do
    if [[ ${inactive[$gpu]} == all ]]; then
      health::fault inactive "GPU $gpu: all links are down" "$gpu"
    elif ((inactive[$gpu] > 0)); then
      health::fault inactive "GPU $gpu: ${inactive[$gpu]} links are down, ${active[$gpu]} are up" "$gpu"
    elif ((active[$gpu] == 0)); then
      health::unknown malformed "GPU $gpu: what nvidia-smi shows of its links cannot be read"
    elif ((active[$gpu] < expected)) && [[ -n $torn ]]; then
      health::unknown malformed "GPU $gpu: ${active[$gpu]} links of $expected, and lines that cannot be read: $torn"
    elif ((active[$gpu] < expected)); then
      health::fault fewer "GPU $gpu: ${active[$gpu]} links of $expected" "$gpu"
    fi
  done
}
