# shellcheck shell=bash
# What jobs inherit: the memory that slurmd may lock, without which EFA does not work, and GPUs that stay loaded.
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

# libfabric registers its buffers as locked memory (aws/aws-ofi-nccl, doc): less than this is known to fail.
readonly LIMITS_LEAST_MEMLOCK=17179869184

limits::applies() { [[ ${NODE_ROLE:-compute} == compute && ${NODE_FAMILY:-} != *eks* ]]; }

limits::quick() {
  [[ -z ${NODE_EFA_INTERFACES:-} || $NODE_EFA_INTERFACES == 0 ]] || limits::memlock
  ! gpu::applies || limits::persistence
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "limits are as they should be"
}

limits::memlock() {
  local pid soft name limit
  health::tool 1 systemctl show --property=MainPID --value slurmd.service
  pid=${TOOL_TEXT//[[:space:]]/}
  # Not here, or not running: jobs would not come.
  [[ $TOOL_STATUS == 0 && $pid =~ ^[1-9][0-9]*$ ]] || return 0
  while read -r name limit _ soft _; do
    [[ $name == Max && $limit == locked ]] || continue
    if [[ $soft != unlimited && ! $soft =~ ^[0-9]{1,18}$ ]]; then
      health::unknown malformed "slurmd's limit of locked memory is '${soft:0:40}'"
    elif [[ $soft != unlimited ]] && ((soft < LIMITS_LEAST_MEMLOCK)); then
      health::fault memlock "slurmd may lock $soft bytes, jobs with EFA need $LIMITS_LEAST_MEMLOCK; unlimited is better"
    fi
    return 0
  done < <(cat "$ULTRACLUSTER_ROOT/proc/$pid/limits" 2>/dev/null)
  health::unknown unread "the limits of slurmd (process $pid) cannot be read"
}

limits::persistence() {
  local row index mode
  gpu::ask
  for row in ${GPU_ROWS[@]+"${GPU_ROWS[@]}"}; do
    gpu::field index "$row" index
    gpu::field mode "$row" persistence_mode
    [[ $mode != Disabled ]] || { health::fault persistence "persistence mode of GPU $index is off" "$index" && return; }
  done
}
