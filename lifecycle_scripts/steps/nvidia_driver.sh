# shellcheck shell=bash
# Libraries: devices packages software version
# The NVIDIA driver, its persistence daemon, and the fabric manager where GPUs are joined by NVSwitches.
# Every image for GPU nodes brings its own driver; a second one breaks it. It is installed on a plain system only.

nvidia_driver::detect() {
  local version
  software::for nvidia-driver compute
  [[ $NODE_ACCELERATOR == nvidia ]] || step::not_applicable "no NVIDIA accelerators"
  nvidia_driver::branches
  software::wait_for_image nvidia-kmod-load nvidia-setup
  version=$(software::module nvidia)
  software::settle nvidia-driver "$version"
  nvidia_driver::can_start || step::absent "driver $version is not loaded"
  if nvidia_driver::has_switches && nvidia_driver::can_start; then
    step::about fabric-manager
    step::component fabric-manager kept "$(nvidia_driver::manager "$version")" "$version"
    software::runs nvidia-fabricmanager || step::absent "nvidia-fabricmanager does not run"
    step::about nvidia-driver
  fi
  nvidia_driver::persists || step::absent "nvidia-persistenced does not run"
  step::present "driver $version"
}

# A driver is right by its branch (580, 595): images differ in patch levels, and no patch level is ever installed on one.
nvidia_driver::branches() {
  local -r floor=${RELEASE['nvidia-driver.floor.version']:-}
  [[ -z $floor ]] || RELEASE['nvidia-driver.floor.version']=${floor%%.*}
}

# Of switches that the node itself manages: those of UltraServers are outside of it.
nvidia_driver::has_switches() {
  case ${NODE_NVSWITCH:-} in
    yes) return 0 ;;
    no) return 1 ;;
    *) (($(devices::on_bus nvswitch) > 0)) ;; # cluster.json does not say
  esac
}

nvidia_driver::is_loaded() {
  [[ -e $ULTRACLUSTER_ROOT/proc/driver/nvidia/version ]]
}

# Its daemons run only with the driver; in an image that is being built they are enabled.
nvidia_driver::can_start() {
  [[ -n ${NODE_BAKE:-} ]] || nvidia_driver::is_loaded
}

nvidia_driver::manager() {
  packages::version nvidia-fabricmanager "nvidia-fabricmanager-${1%%.*}" nvidia-fabric-manager
}

# Where there is no such daemon, that is the image's affair.
nvidia_driver::persists() {
  ! nvidia_driver::can_start || ! systemctl cat nvidia-persistenced.service >/dev/null 2>&1 || software::runs nvidia-persistenced
}

nvidia_driver::install() {
  local version
  nvidia_driver::branches
  version=$(software::module nvidia)
  if ! software::fits nvidia-driver "$version"; then
    if [[ $NODE_FAMILY == plain ]]; then
      software::install nvidia-driver
      version=$(software::module nvidia)
    else
      software::unfit nvidia-driver "$version" \
        "the driver is ${version:-missing}, ${RELEASE['nvidia-driver.floor.family']:-release $CLUSTER_RELEASE} needs $(software::least nvidia-driver): it comes with the $NODE_FAMILY image and is never installed beside it, choose a newer image"
    fi
  fi
  # At an early stage of the boot, or just installed
  nvidia_driver::can_start || modprobe nvidia || log::warn "the nvidia module does not load: see the kernel's log"
  nvidia_driver::persists || software::start nvidia-persistenced || log::warn "nvidia-persistenced does not start: see journalctl -u nvidia-persistenced"
  if nvidia_driver::has_switches && nvidia_driver::can_start && ! software::runs nvidia-fabricmanager; then
    nvidia_driver::start_manager "$version"
  fi
  software::clean nvidia-driver fabric-manager
}

# It refuses to work with a driver of any other version, so what is installed is the driver's.
nvidia_driver::start_manager() {
  local -r version=$1
  step::about fabric-manager
  if ! systemctl cat nvidia-fabricmanager.service >/dev/null 2>&1; then
    [[ -n ${RELEASE['fabric-manager.packages']:-} ]] ||
      step::fail "the GPUs of $NODE_INSTANCE_TYPE are joined by NVSwitches, and this image has no fabric manager: choose an image that has it"
    # shellcheck disable=SC2001 # a pattern
    RELEASE['fabric-manager.packages']=$(sed "s/=[^ ]*/=$version-*/g" <<<"${RELEASE['fabric-manager.packages']}")
    RELEASE['fabric-manager.kind']=packages
    software::install fabric-manager
  fi
  software::start nvidia-fabricmanager ||
    step::fail "the fabric manager does not start, without it CUDA does not$(nvidia_driver::mismatch "$version"): see journalctl -u nvidia-fabricmanager"
}

nvidia_driver::mismatch() {
  local -r manager=$(nvidia_driver::manager "$1")
  [[ -n $manager ]] || return 0
  version::compare "${manager%%-*}" "$1"
  [[ $VERSION_ORDER == same ]] || printf ' (it is %s, the driver %s: they must have one version)' "$manager" "$1"
}

# The module does not load on a node without a GPU.
nvidia_driver::without_gpu() {
  [[ ! -d $ULTRACLUSTER_ROOT/sys/bus/pci/devices ]] || (($(devices::on_bus nvidia) > 0)) ||
    printf ': the PCI bus shows no GPU, %s has %s: replace the node' "$NODE_INSTANCE_TYPE" "$NODE_ACCELERATORS"
}

nvidia_driver::verify() {
  local version
  nvidia_driver::branches
  version=$(software::module nvidia)
  step::about nvidia-driver
  [[ -n ${NODE_BAKE:-} ]] || nvidia_driver::is_loaded || step::fail "driver ${version:-of the release} is not loaded$(nvidia_driver::without_gpu)"
  nvidia_driver::persists || log::warn "nvidia-persistenced does not run: see journalctl -u nvidia-persistenced"
  if nvidia_driver::has_switches && nvidia_driver::can_start; then
    step::about fabric-manager
    software::runs nvidia-fabricmanager ||
      step::fail "the fabric manager does not run, without it CUDA does not$(nvidia_driver::mismatch "$version"): see journalctl -u nvidia-fabricmanager"
    step::component fabric-manager kept "$(nvidia_driver::manager "$version")" "$version" "it runs$(nvidia_driver::mismatch "$version")"
  fi
  software::proven nvidia-driver "$version" "driver$(nvidia_driver::has_switches && echo ", fabric manager runs")"
}
