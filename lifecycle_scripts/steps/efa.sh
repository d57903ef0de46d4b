# shellcheck shell=bash
# Libraries: devices packages software
# The EFA installer: kernel module, rdma-core, libfabric, Open MPI and the NCCL plugin, all of one release.
# On EKS images only the module and rdma-core: libfabric and the plugin are in the containers there.

readonly EFA_PACKAGES=(efa 'efa-*' libfabric-aws libfabric1-aws 'libfabric-aws-*' libnccl-ofi)
readonly EFA_MANIFEST=/opt/amazon/efa_installed_packages

efa::detect() {
  software::for efa-installer compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  local version
  if efa::is_minimal; then
    efa::only_module
    version=$(software::module efa)
    software::settle efa-installer "$version"
    step::present "efa module $version"
  fi
  version=$(efa::version)
  software::settle efa-installer "$version"
  [[ -n $(software::module efa) ]] || step::absent "no efa module for this kernel"
  step::present "EFA installer $version"
}

efa::is_minimal() {
  [[ $NODE_FAMILY == eks-al2023 ]]
}

# There the module stands for the installer: any will do, the release prefers its own, and no floor is known.
efa::only_module() {
  RELEASE['efa-installer.version']=${RELEASE['efa-installer.provides.efa']:-unversioned}
  RELEASE['efa-installer.floor.version']=''
}

# Its first line: # EFA installer version: 1.50.0
efa::version() {
  sed -n '1s/^# EFA installer version: *\([0-9]\+\.[0-9]\+\.[0-9]\+\).*/\1/p' "$ULTRACLUSTER_ROOT$EFA_MANIFEST" 2>/dev/null || true
}

efa::needs() { echo efa-installer; }

efa::install() {
  local options=(-y --mpi=openmpi4)
  ! efa::is_minimal || options=(-y --minimal)
  software::unpack efa-installer
  # An earlier run may have held them (holds.sh).
  packages::unhold "${EFA_PACKAGES[@]}" || log::warn "the packages of EFA stay held: its installer may refuse to replace them"
  # Whatever an interrupted installation leaves is installed again: the manifest must not speak for it.
  rm -f -- "$ULTRACLUSTER_ROOT$EFA_MANIFEST"
  cd "$UNPACKED" || exit
  software::dependencies efa-installer
  # Kernel modules are built here: the headers have to fit the kernel that runs.
  packages::alone ./efa_installer.sh "${options[@]}" ||
    step::fail "the EFA installer ${RELEASE['efa-installer.version']} failed: see its lines above"
  cd /
  software::clean efa-installer
}

efa::verify() {
  local module devices
  module=$(software::module efa)
  [[ -n $module ]] || step::fail "no efa module for this kernel: are its headers installed?"
  if [[ -z ${NODE_BAKE:-} ]]; then
    devices=$(devices::count efa)
    # On some types they appear late; what is really there is for the fabric test to judge.
    ((devices >= NODE_EFA_INTERFACES)) || log::warn "$NODE_INSTANCE_TYPE should have $NODE_EFA_INTERFACES EFA devices, found $devices"
  fi
  if efa::is_minimal; then
    efa::only_module
    software::proven efa-installer "$module" "efa module $module (minimal form), ${devices:-no} devices"
    return
  fi
  [[ -x $ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info ]] || step::fail "the installer left no /opt/amazon/efa/bin/fi_info"
  software::proven efa-installer "$(efa::version)" "efa module $module, ${devices:-no} devices"
}
