# shellcheck shell=bash
# Lustre over EFA: FSx's own set-up script and the service that it leaves, and nvidia-fs for GPUDirect Storage. Only where
# the file system was created for it and the instance type can do it; everywhere else Lustre uses TCP.

readonly LUSTRE_EFA_UNIT=configure-efa-fsx-lustre-client
# Nitro v3 (p4d, p4de, g5) and the trn2 family stay on TCP (FSx for Lustre User Guide).
readonly LUSTRE_EFA_INCAPABLE='^(p4d|p4de|g5|trn2|trn2u)\.'
readonly LUSTRE_EFA_GDS='^(p5|p5e|p5en|p6-b200)\.'

lustre_efa::detect() {
  [[ -n ${LUSTRE_EFA:-} ]] || step::not_applicable "the Lustre file system does not use EFA"
  CLUSTER_COMPONENTS+=" lustre-efa-setup" # asked for by the file system
  software::for lustre-efa-setup compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  [[ ! $NODE_INSTANCE_TYPE =~ $LUSTRE_EFA_INCAPABLE ]] || step::not_applicable "$NODE_INSTANCE_TYPE uses Lustre over TCP"
  software::runs "$LUSTRE_EFA_UNIT" || step::absent "$LUSTRE_EFA_UNIT.service does not run"
  ! lustre_efa::wants_gds || [[ -n $(software::module nvidia_fs) ]] || step::absent "no nvidia-fs module"
  step::present "$LUSTRE_EFA_UNIT.service runs"
}

lustre_efa::wants_gds() {
  [[ $NODE_INSTANCE_TYPE =~ $LUSTRE_EFA_GDS && $NODE_ACCELERATOR == nvidia && -n ${RELEASE['nvidia-fs.version']:-} &&
    " ${CLUSTER_COMPONENTS:-} " == *' nvidia-fs '* ]]
}

lustre_efa::fetch() { release::facts && software::fetch lustre-efa-setup; }

lustre_efa::install() {
  local kernel
  local options=()
  release::facts
  kernel=$(uname -r)
  if [[ $NODE_OS == ubuntu* ]]; then
    version::compare "$kernel" 6.8
    [[ $VERSION_ORDER != older ]] || step::fail "Lustre over EFA needs kernel 6.8 or newer on Ubuntu, this is $kernel"
  fi
  if lustre_efa::wants_gds; then
    [[ -n $(software::module nvidia_fs) ]] || software::install nvidia-fs
    options=(--optimized-for-gds)
  fi
  software::unpack lustre-efa-setup
  [[ -e $UNPACKED/setup.sh ]] || step::fail "the set-up archive of FSx has no setup.sh"
  bash "$UNPACKED/setup.sh" "${options[@]}" || step::fail "the EFA set-up of FSx failed: Lustre would use TCP"
  software::clean lustre-efa-setup nvidia-fs
}

lustre_efa::verify() {
  release::facts
  software::runs "$LUSTRE_EFA_UNIT" || step::fail "$LUSTRE_EFA_UNIT.service does not run: Lustre would use TCP"
  step::message "$LUSTRE_EFA_UNIT.service runs$(lustre_efa::wants_gds && echo ", nvidia-fs $(software::module nvidia_fs)")"
}
