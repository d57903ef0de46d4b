# shellcheck shell=bash
# GPUs as nvidia-smi shows them: one question for all checks, since each takes its time and they wait for one another.
[[ -z ${ULTRACLUSTER_LIB_HEALTH_GPU:-} ]] || return 0
ULTRACLUSTER_LIB_HEALTH_GPU=1

# shellcheck source-path=SCRIPTDIR source=health.sh
source "${BASH_SOURCE[0]%/*}/health.sh"

# In the order of the columns. Drivers refuse the whole question for one field that they do not know: that one is then left
# out (gpu_recovery_action: from R570 on; clocks_event_reasons was clocks_throttle_reasons before R535).
readonly GPU_FIELDS=(index pci.bus_id uuid name persistence_mode mig.mode.current
  ecc.mode.current ecc.errors.uncorrected.volatile.total ecc.errors.uncorrected.aggregate.total
  clocks_event_reasons.hw_slowdown clocks_event_reasons.hw_thermal_slowdown clocks_event_reasons.hw_power_brake_slowdown
  clocks_event_reasons.sw_thermal_slowdown clocks.current.sm clocks.max.sm temperature.gpu pstate utilization.gpu fabric.state fabric.status gpu_recovery_action)
# So many seconds an answer is good for: as long as the checks of one prolog take
readonly GPU_FRESH=8

# Status of nvidia-smi that are a fault of its own, with the row that says what to do (nvidia-smi(1), RETURN VALUE)
# shellcheck disable=SC2034 # gpu_count.sh reads it
declare -rA GPU_EXITS=([6]=none [8]=power [9]=driver [10]=interrupt [12]=library [14]=inforom [15]=lost)

gpu::applies() { [[ ${NODE_ACCELERATOR:-} == nvidia ]]; }

# gpu::ask: sets GPU_ROWS, an array with one line per GPU, fields apart by |; GPU_STATUS, of nvidia-smi; GPU_SAID, what it said
# when it failed; GPU_LACKS, the fields that this driver does not know. The answer is shared by the checks that run side by
# side: the first one asks.
gpu::ask() {
  local -r file=$HEALTH_RUN/nvidia-smi
  local lock now stamp='' status=''
  GPU_ROWS=() GPU_SAID='' GPU_LACKS=''
  { (umask 077 && : >>"$file.lock") && exec {lock}>>"$file.lock"; } 2>/dev/null || lock=
  [[ -z $lock ]] || flock --wait 1.7 "$lock" || true
  read -r now _ <"/proc/uptime"
  now=${now%%.*}
  { read -r stamp status <"$file"; } 2>/dev/null || true
  if [[ ! $stamp =~ ^[0-9]+$ || ! $status =~ ^[0-9]+$ ]] || ((now - stamp > GPU_FRESH || now < stamp)); then
    # What hangs must not hold the lock beyond its end.
    if [[ -n $lock ]]; then gpu::look {lock}>&-; else gpu::look; fi
    status=$TOOL_STATUS
    if [[ -n $lock ]]; then
      { printf '%s %s\n%s\n%s\n' "$now" "$status" "$GPU_LACKS" "$TOOL_TEXT" >"$file.new" && mv -f -- "$file.new" "$file"; } 2>/dev/null || true
    fi
  else
    { read -r _ && IFS= read -r GPU_LACKS && IFS= read -r -d '' TOOL_TEXT; } <"$file" || true
  fi
  [[ -z $lock ]] || exec {lock}>&-
  GPU_STATUS=$status
  gpu::rows
}

# gpu::look: asks; a field that the driver does not know is left out and asked no more.
gpu::look() {
  local tries fields=("${GPU_FIELDS[@]}") bad
  for ((tries = 0; tries < 8; tries++)); do
    printf -v bad '%s,' "${fields[@]}"
    health::tool "${ULTRACLUSTER_HEALTH_TOOL_SECONDS:-1.6}" nvidia-smi "--query-gpu=${bad%,}" --format=csv,noheader,nounits
    [[ $TOOL_TEXT =~ Field\ \"([a-z_.]+)\"\ is\ not\ a\ valid\ field ]] || return 0
    bad=${BASH_REMATCH[1]}
    gpu::without "$bad" fields || return 0
    GPU_LACKS+="$bad "
  done
}

# gpu::without FIELD ARRAY: status 1 where it is not in it
gpu::without() {
  local -n gpu_fields=$2
  local index
  for index in "${!gpu_fields[@]}"; do
    [[ ${gpu_fields[index]} == "$1" ]] || continue
    unset "gpu_fields[index]"
    gpu_fields=("${gpu_fields[@]}")
    return 0
  done
  return 1
}

# Lines with as many fields as were asked for, the first of which is a number, are GPUs; anything else is what it said.
gpu::rows() {
  local line fields lacks
  read -ra lacks <<<"$GPU_LACKS"
  local -r wanted=$((${#GPU_FIELDS[@]} - ${#lacks[@]}))
  while IFS= read -r line; do
    line=${line//, /|}
    IFS='|' read -ra fields <<<"$line"
    if ((${#fields[@]} == wanted)) && [[ ${fields[0]} =~ ^[0-9]+$ ]]; then
      GPU_ROWS+=("$line")
    elif [[ -n ${line//[[:space:]]/} ]]; then
      GPU_SAID+=${GPU_SAID:+ }${line:0:200}
    fi
  done <<<"$TOOL_TEXT"
}

# shellcheck disable=SC2034 # what callers read
# gpu::count: after gpu::ask, sets GPU_COUNT, how many answer, and GPU_WHY, what nvidia-smi said where that is not known (empty) or 0.
# One GPU that is lost can take the whole answer with it, so that an error is 0 only where no GPU can work.
gpu::count() {
  local row
  GPU_COUNT=0 GPU_WHY=''
  for row in ${GPU_ROWS[@]+"${GPU_ROWS[@]}"}; do
    [[ $row == *'[GPU is lost]'* ]] || GPU_COUNT=$((GPU_COUNT + 1))
  done
  ((${#GPU_ROWS[@]} == 0)) || return 0
  case $GPU_STATUS:$GPU_SAID in
    127:*) GPU_COUNT='' GPU_WHY="there is no nvidia-smi on this node" ;;
    124:*) GPU_COUNT='' GPU_WHY="nvidia-smi does not answer in time" ;;
    *'No devices were found'* | *'version mismatch'* | 6:* | 9:* | 12:*) GPU_WHY="nvidia-smi (status $GPU_STATUS): ${GPU_SAID:-it says nothing}" ;;
    *) GPU_COUNT='' GPU_WHY="nvidia-smi (status $GPU_STATUS): ${GPU_SAID:-it says nothing}" ;;
  esac
}

# gpu::field VARIABLE ROW FIELD: empty where this driver or GPU does not tell ([N/A], [Not Supported])
gpu::field() {
  local gpu_name gpu_at=0 gpu_values
  printf -v "$1" '%s' ''
  IFS='|' read -ra gpu_values <<<"$2"
  for gpu_name in "${GPU_FIELDS[@]}"; do
    [[ " $GPU_LACKS" != *" $gpu_name "* ]] || continue
    if [[ $gpu_name == "$3" ]]; then
      [[ ${gpu_values[gpu_at]} == '['* || ${gpu_values[gpu_at]} == N/A ]] || printf -v "$1" '%s' "${gpu_values[gpu_at]}"
      return 0
    fi
    gpu_at=$((gpu_at + 1))
  done
}

# gpu::answers: is there an answer to judge? Else it says why not, as `unknown`: what is wrong with the GPUs is for gpu_count.
gpu::answers() {
  gpu::ask
  ((${#GPU_ROWS[@]} == 0)) || return 0
  case $GPU_STATUS in
    127) health::unknown absent "there is no nvidia-smi on this node" ;;
    124) health::unknown late "nvidia-smi does not answer in time" ;;
    *) health::unknown unread "nvidia-smi ended with status $GPU_STATUS and shows no GPU: ${GPU_SAID:0:200}" ;;
  esac
  return 1
}
