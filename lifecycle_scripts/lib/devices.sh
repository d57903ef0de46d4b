# shellcheck shell=bash
# Devices of a node. Steps, health checks and the proof count them here, so that they cannot contradict each other. GPUs that answer
# are counted by gpu::count (health_gpu.sh).
[[ -z ${ULTRACLUSTER_LIB_DEVICES:-} ]] || return 0
ULTRACLUSTER_LIB_DEVICES=1

# devices::names efa|neuron: those that their driver serves, one per line. For EFA an entry alone proves nothing: on HGX B200 two of
# ten are not EFA.
devices::names() {
  local device driver devices=()
  case $1 in
    efa)
      for device in "$ULTRACLUSTER_ROOT"/sys/class/infiniband/*; do
        [[ ! -L $device/device/driver ]] || devices+=("${device##*/}")
      done
      ((${#devices[@]} > 0)) || return 0
      for device in "${devices[@]}"; do
        read -r driver
        [[ ${driver##*/} != efa ]] || printf '%s\n' "$device"
      done < <(cd "$ULTRACLUSTER_ROOT/sys/class/infiniband" && readlink "${devices[@]/%//device/driver}")
      ;;
    neuron)
      # Its driver has moved files of the first folder before (2.31), so the device file counts, too.
      for device in "$ULTRACLUSTER_ROOT"/sys/devices/virtual/neuron_device/neuron[0-9]* "$ULTRACLUSTER_ROOT"/dev/neuron[0-9]*; do
        device=${device##*/}
        [[ ! $device =~ ^neuron[0-9]+$ || " ${devices[*]} " == *" $device "* ]] || devices+=("$device")
      done
      ((${#devices[@]} == 0)) || printf '%s\n' "${devices[@]}"
      ;;
  esac
}

# devices::count efa|neuron
devices::count() {
  local names
  mapfile -t names < <(devices::names "$1")
  echo "${#names[@]}"
}

# devices::efa_expected FOUND: how many there should be. Launch layouts of one type differ (GB200: 4 or 8): the smallest right number
# that is not below FOUND.
devices::efa_expected() {
  local number best=''
  for number in $NODE_EFA_INTERFACES ${NODE_EFA_LAYOUTS:-}; do
    ((number < $1)) || [[ -n $best && $best -le $number ]] || best=$number
  done
  echo "${best:-$NODE_EFA_INTERFACES}"
}

# devices::libfabric: stdin is what `fi_info -p efa` printed; how many devices that names. Each is there twice, as efa and efa-direct.
devices::libfabric() {
  awk '$1 == "provider:" { efa = $2 == "efa" } efa && $1 == "domain:" && !seen[$2]++ { n++ } END { print n + 0 }'
}

# devices::on_bus nvidia|nvswitch|neuron|efa: how many the PCI bus shows, with or without a driver
devices::on_bus() {
  local device vendor id class count=0
  for device in "$ULTRACLUSTER_ROOT"/sys/bus/pci/devices/*; do
    [[ -e $device/vendor ]] || continue
    vendor=$(<"$device/vendor") id=$(<"$device/device") class=$(<"$device/class")
    case $1:$vendor:$id:$class in
      # Display and 3D controllers; NVSwitches are bridges. Those of HGX B200 and later are not on the bus (NVIDIA Fabric
      # Manager User Guide).
      nvidia:0x10de:*:0x0300* | nvidia:0x10de:*:0x0302*) count=$((count + 1)) ;;
      nvswitch:0x10de:*:0x0680*) count=$((count + 1)) ;;
      neuron:0x1d0f:0x7[0-9]64:*) count=$((count + 1)) ;;
      efa:0x1d0f:0xefa[0-9]:*) count=$((count + 1)) ;;
    esac
  done
  echo "$count"
}

# --- what EFA's ports count ---

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
  done < <(devices::names efa)
}
