# shellcheck shell=bash
# Neuron devices of Trainium and Inferentia, by the files of their driver: no process is started, and none disturbed.
# shellcheck source-path=SCRIPTDIR source=../lib/devices.sh
source "$ULTRACLUSTER_HOME/lib/devices.sh"

neuron::applies() { [[ ${NODE_ACCELERATOR:-} == neuron ]]; }

neuron::quick() {
  local -r folder=$ULTRACLUSTER_ROOT/sys/devices/virtual/neuron_device
  local device found bus expected=${NODE_ACCELERATORS:-}
  bus=$(devices::on_bus neuron)
  found=$(devices::count neuron)
  if ((found == 0)) && [[ ! -d $ULTRACLUSTER_ROOT/sys/module/neuron ]]; then
    health::fault driver "the Neuron driver is not loaded; the PCI bus shows $bus devices"
    return 0
  fi
  [[ $expected =~ ^[1-9][0-9]?$ ]] || expected=$bus
  ((found >= expected)) || health::fault missing "$found Neuron devices of $expected; the PCI bus shows $bus"
  for device in "$folder"/neuron[0-9]*; do
    [[ ! -d $device ]] || neuron::errors "$device"
  done
  [[ -n $(<"$HEALTH_FOUND") ]] || health::ok "$found Neuron devices${NEURON_UNTOLD:+, whose driver tells no errors}"
}

# The driver moved these files (2.31): they are looked for below the device, by their names. They count since the driver was
# loaded, and what AWS says to do about the first one stays to be done.
neuron::errors() {
  local -r name=${1##*/}
  local counter value file files
  NEURON_UNTOLD=yes
  for counter in sram:sram_ecc_uncorrected hbm:mem_ecc_uncorrected hbm_repairable:mem_ecc_repairable_uncorrected; do
    files=("$1"/stats/hardware/"${counter#*:}" "$1"/*/"${counter#*:}" "$1"/*/*/"${counter#*:}")
    for file in "${files[@]}"; do
      [[ -r $file ]] || continue
      # Older drivers have a folder with a file `total`.
      [[ ! -d $file ]] || file=$file/total
      health::read value "$file"
      [[ $value =~ ^[0-9]{1,18}$ ]] || continue
      NEURON_UNTOLD=
      ((value == 0)) || health::fault "${counter%%:*}" "$name: $value of ${counter#*:}" "$name"
      break
    done
  done
}
