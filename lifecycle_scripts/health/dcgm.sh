# shellcheck shell=bash
# DCGM's diagnostics of level 2, on a node without a job: 2 to 11 minutes on eight GPUs. Far too long for a prolog
# (aws/aws-parallelcluster#6777): `quick` tells the result that `idle` has kept.
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

# So long a result stands
readonly DCGM_FRESH=86400

# The diagnostics require whole GPUs, and refuse those with MIG (NVIDIA/DCGM, nvvs/src/NvidiaValidationSuite.cpp).
dcgm::applies() { gpu::applies && [[ -z ${NODE_MIG:-} ]]; }

# A result of an earlier boot says nothing: what it asked for may have been done.
dcgm::quick() {
  local kept boot at now status line found=''
  health::boot boot
  health::kept kept dcgm
  printf -v now '%(%s)T' -1
  read -r at status _ <<<"${kept#*$'\n'}"
  if [[ $kept != "$boot"$'\n'* || ! $at =~ ^[0-9]{9,11}$ ]] || ((now - at > DCGM_FRESH || at > now + 300)); then
    health::ok "no result of this boot and of the last day"
    return 0
  fi
  while IFS=$'\t' read -r status line; do
    [[ $status == @(isolate|reset|links|pending|setting|fail) ]] || continue
    health::fault "$status" "$line"
    found=yes
  done <<<"$kept"
  [[ -n $found ]] || health::ok "passed $(((now - at) / 60)) min ago"
}

dcgm::idle() {
  local boot now found
  if ! command -v dcgmi >/dev/null; then
    health::unknown absent "there is no dcgmi on this node"
    return 0
  fi
  health::tool "${ULTRACLUSTER_HEALTH_DCGM_SECONDS:-1500}" dcgmi diag -r 2 -j
  if ((TOOL_STATUS == 124)); then
    health::unknown late "dcgmi diag did not end in time"
    return 0
  fi
  # The exit status is not the result: the tests' own are.
  found=$(ACCELERATOR=${NODE_ACCELERATOR_NAME:-} python3 -ISB "$ULTRACLUSTER_HOME/health/dcgm.py" <<<"$TOOL_TEXT" 2>/dev/null) || found=
  if [[ -z $found ]]; then
    health::unknown malformed "dcgmi diag (status $TOOL_STATUS) printed no result: ${TOOL_TEXT:0:200}"
    return 0
  fi
  health::boot boot
  printf -v now '%(%s)T' -1
  health::keep dcgm "$boot"$'\n'"$now"$'\n'"$found"$'\n'
  dcgm::quick
}
