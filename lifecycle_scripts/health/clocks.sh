# shellcheck shell=bash
# Clocks of GPUs: what slows them down, and one that is slower than its peers. NVIDIA publishes no limit: it warns.
# shellcheck source-path=SCRIPTDIR source=../lib/health_gpu.sh
source "$ULTRACLUSTER_HOME/lib/health_gpu.sh"

clocks::applies() { gpu::applies; }

clocks::quick() {
  local row index value field clock state most=0 known=''
  gpu::answers || return 0
  for row in "${GPU_ROWS[@]}"; do
    gpu::field index "$row" index
    for field in hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown; do
      gpu::field value "$row" "clocks_event_reasons.$field"
      [[ -z $value ]] || known=yes
      [[ $value != Active ]] || health::fault slowdown "GPU $index is slowed down by hardware: $field$(clocks::heat "$row")" "$index"
    done
    gpu::field value "$row" clocks_event_reasons.sw_thermal_slowdown
    [[ $value != Active ]] || health::fault thermal "GPU $index slows itself down for its heat$(clocks::heat "$row")" "$index"
    gpu::field clock "$row" clocks.current.sm
    gpu::field state "$row" pstate
    [[ ! $clock =~ ^[0-9]{1,5}$ || $state != P0 ]] || ((clock <= most)) || most=$clock
  done
  clocks::compare "$most"
  if [[ -z $(<"$HEALTH_FOUND") ]]; then
    if [[ -n $known ]]; then health::ok "nothing slows GPUs down"; else health::unknown untold "the driver does not tell what slows GPUs down"; fi
  fi
}

clocks::heat() {
  local degrees
  gpu::field degrees "$1" temperature.gpu
  [[ ! $degrees =~ ^[0-9]+$ ]] || printf ' (%s °C)' "$degrees"
}

# clocks::compare MOST: GPUs in the state of full power run at one clock, but for a bit. An idle one may be anywhere, so that only
# one far below half of the others counts, and only when these run fast.
clocks::compare() {
  local row index clock most_of_it state limit
  for row in "${GPU_ROWS[@]}"; do
    gpu::field index "$row" index
    gpu::field clock "$row" clocks.current.sm
    gpu::field limit "$row" clocks.max.sm
    gpu::field state "$row" pstate
    [[ $clock =~ ^[0-9]{1,5}$ && $limit =~ ^[1-9][0-9]{1,5}$ && $state == P0 ]] || continue
    most_of_it=$((limit * 3 / 4))
    gpu::field state "$row" utilization.gpu
    [[ $state =~ ^[0-9]{1,3}$ ]] || continue
    ((state < 90 || $1 < most_of_it || clock * 2 >= $1)) ||
      health::fault low "GPU $index runs at $clock MHz, its fastest peer at $1 MHz" "$index"
  done
}
