# shellcheck shell=bash
# The NVIDIA driver, its persistence daemon, and the fabric manager where GPUs are joined by NVSwitches.
# Every image for GPU nodes brings its own driver; a second one breaks it. It is installed on a plain system only.

# A fabric manager runs on the node itself on these types; on p6e-gb200 the switches are outside of it.
readonly NVIDIA_DRIVER_NVSWITCH='^(p4d|p4de|p5e|p5en|p6-b200|p6-b300)\.|^p5\.48xlarge$'

nvidia_driver::detect() {
  local version unit
  software::for nvidia-driver compute
  [[ $NODE_ACCELERATOR == nvidia ]] || step::not_applicable "no NVIDIA accelerators"
  version=$(software::module nvidia)
  software::settle nvidia-driver "$version"
  while read -r unit; do
    software::runs "$unit" || step::absent "$unit does not run"
  done < <(nvidia_driver::units)
  step::present "driver $version"
}

nvidia_driver::units() {
  [[ -n ${NODE_BAKE:-} ]] || nvidia_driver::is_loaded || return 0
  ! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || echo nvidia-persistenced
  [[ ! $NODE_INSTANCE_TYPE =~ $NVIDIA_DRIVER_NVSWITCH ]] || echo nvidia-fabricmanager
}

nvidia_driver::is_loaded() {
  [[ -e $ULTRACLUSTER_ROOT/proc/driver/nvidia/version ]]
}

nvidia_driver::install() {
  local version unit
  release::facts
  version=$(software::module nvidia)
  if [[ -n $version ]]; then
    VERSION_ORDER=same
    ! software::pins nvidia-driver || version::compare "$version" "${RELEASE['nvidia-driver.version']}"
  fi
  if [[ -z $version || $VERSION_ORDER == older ]]; then
    [[ $NODE_FAMILY == plain ]] ||
      step::fail "the driver is ${version:-missing}, release $CLUSTER_RELEASE needs ${RELEASE['nvidia-driver.version']}: it comes with the $NODE_FAMILY image and is never installed beside it, choose a newer image"
    software::install nvidia-driver
  fi
  while read -r unit; do
    software::runs "$unit" || software::start "$unit" || step::fail "$unit does not start: see journalctl -u $unit"
  done < <(nvidia_driver::units)
  software::clean nvidia-driver
}

nvidia_driver::verify() {
  local version manager unit units=()
  release::facts
  version=$(software::module nvidia)
  mapfile -t units < <(nvidia_driver::units)
  for unit in "${units[@]}"; do
    software::runs "$unit" || step::fail "$unit does not run: see journalctl -u $unit"
  done
  [[ -n ${NODE_BAKE:-} ]] || nvidia_driver::is_loaded || step::fail "driver $version is on the disk, but not loaded"
  # It refuses to work with a driver of any other version.
  manager=$(packages::version nvidia-fabricmanager "nvidia-fabricmanager-${version%%.*}" nvidia-fabric-manager)
  if [[ -n $manager && " ${units[*]} " == *' nvidia-fabricmanager '* ]]; then
    version::compare "${manager%%-*}" "$version"
    [[ $VERSION_ORDER == same ]] || step::fail "fabric manager $manager does not fit driver $version: they must have one version"
  fi
  software::proven nvidia-driver "$version" "driver, ${units[*]:-no services}"
}
