# shellcheck shell=bash
# EFA as its driver shows it: devices and what they count.
[[ -z ${ULTRACLUSTER_LIB_EFA_DEVICES:-} ]] || return 0
ULTRACLUSTER_LIB_EFA_DEVICES=1

# Prints the devices that the driver efa serves: an entry alone proves nothing, on HGX B200 two of ten are not EFA.
efa::devices() {
  local device driver devices=()
  for device in "$ULTRACLUSTER_ROOT"/sys/class/infiniband/*; do
    [[ ! -e $device/device/driver ]] || devices+=("${device##*/}")
  done
  ((${#devices[@]} > 0)) || return 0
  for device in "${devices[@]}"; do
    read -r driver
    [[ ${driver##*/} != efa ]] || printf '%s\n' "$device"
  done < <(cd "$ULTRACLUSTER_ROOT/sys/class/infiniband" && readlink -f "${devices[@]/%//device/driver}")
}

readonly EFA_BYTES=(rdma_write_bytes rdma_read_bytes tx_bytes rx_bytes)
# Some exist only from Nitro v4 on.
readonly EFA_ERRORS=(rx_drops retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events rdma_read_wr_err rdma_write_wr_err)

# Prints DEVICE COUNTER VALUE for all that exist.
efa::counters() {
  local device counter value
  while IFS= read -r device; do
    for counter in "${EFA_BYTES[@]}" "${EFA_ERRORS[@]}"; do
      { read -r value <"$ULTRACLUSTER_ROOT/sys/class/infiniband/$device/ports/1/hw_counters/$counter"; } 2>/dev/null || continue
      printf '%s %s %s\n' "$device" "$counter" "$value"
    done
  done < <(efa::devices)
}
