# shellcheck shell=bash
# EFA: devices that its driver serves, their ports, and what their error counters did since the last look.
# shellcheck source-path=SCRIPTDIR source=../lib/devices.sh
source "$ULTRACLUSTER_HOME/lib/devices.sh"

# So many a second count as a sign. AWS publishes no limit: this is the one of EKS node monitoring (aws/eks-node-monitoring-agent,
# monitors/networking/efa), and it warns.
readonly EFA_MOST_A_SECOND=100

efa::applies() { [[ -n ${NODE_EFA_INTERFACES:-} && $NODE_EFA_INTERFACES != 0 ]]; }

efa::quick() {
  local devices device found expected state said
  mapfile -t devices < <(devices::names efa)
  found=${#devices[@]}
  said="$found EFA devices"
  if [[ ! $NODE_EFA_INTERFACES =~ ^[0-9]{1,3}$ ]]; then
    health::unknown expected "$said; how many there should be is '$NODE_EFA_INTERFACES'"
  elif expected=$(devices::efa_expected "$found") && ((found == 0)); then
    health::fault none "no EFA device is served by its driver; the PCI bus shows $(devices::on_bus efa), $expected should be there"
  elif ((found < expected)); then
    health::fault missing "$found EFA devices of $expected; the PCI bus shows $(devices::on_bus efa)"
  fi
  for device in "${devices[@]}"; do
    health::read state "$ULTRACLUSTER_ROOT/sys/class/infiniband/$device/ports/1/state"
    [[ -z $state || $state == *ACTIVE* ]] || health::fault down "the port of $device is '${state:0:40}'" "$device"
  done
  efa::trend
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "$said${EFA_TREND:+, errors: $EFA_TREND}"
}

# Counters begin again with each boot and with a device that was reset: what went back is counted from 0.
efa::trend() {
  local boot old kept='' now seconds key value before rise most=0 worst=''
  EFA_TREND=
  health::boot boot
  read -r now _ </proc/uptime
  now=${now%%.*}
  health::kept old efa
  [[ $old == "$boot "* ]] || old=
  seconds=${old#* } seconds=${seconds%%$'\n'*}
  while read -r device key value; do
    [[ $value =~ ^[0-9]{1,18}$ && " ${EFA_ERRORS[*]} " == *" $key "* ]] || continue
    kept+="$device:$key $value"$'\n'
    [[ $old == *$'\n'"$device:$key "* ]] || continue
    before=${old##*$'\n'"$device:$key "} before=${before%%$'\n'*}
    [[ $before =~ ^[0-9]{1,18}$ ]] || continue
    ((value >= before)) || before=0
    rise=$((value - before))
    ((rise <= most)) || { most=$rise worst="$device $key"; }
  done < <(efa::counters)
  health::keep efa "$boot $now"$'\n'"$kept"
  ((most > 0)) && [[ $seconds =~ ^[0-9]+$ ]] && ((now >= seconds)) || return 0
  seconds=$((now > seconds ? now - seconds : 1))
  EFA_TREND="$worst rose by $most in $seconds s"
  ((most <= EFA_MOST_A_SECOND * seconds)) || health::fault errors "$EFA_TREND" "${worst%% *}"
}
