# shellcheck shell=bash
# The Lustre client of FSx. Its modules are built for one kernel each, so the kernel has to be one of the release's matrix.

lustre_client::detect() {
  software::for lustre-client compute login controller
  [[ -n ${LUSTRE_PATH:-} || -n ${NODE_BAKE:-} ]] || step::not_applicable "cluster.json names no Lustre file system"
  software::settle lustre-client "$(software::module lustre)"
  [[ -e $ULTRACLUSTER_ROOT/sbin/mount.lustre || -e $ULTRACLUSTER_ROOT/usr/sbin/mount.lustre ]] || step::absent "no mount.lustre"
  step::present "Lustre $(software::module lustre)"
}

# Ranges "low..high" of kernel releases; the high end stands for its whole series. Without ranges, any kernel will do.
lustre_client::knows_kernel() {
  local -r kernel=$1
  local -r ranges=${RELEASE["kernel.provides.$NODE_OS"]:-}
  local range low high
  [[ -n $ranges ]] || return 0
  for range in $ranges; do
    low=${range%..*} high=${range#*..}
    version::compare "$kernel" "$low"
    [[ $VERSION_ORDER != older ]] || continue
    [[ $kernel != "$high" && $kernel != "$high"[.-]* ]] || return 0
    version::compare "$kernel" "$high"
    [[ $VERSION_ORDER == newer ]] || return 0
  done
  return 1
}

lustre_client::fetch() { release::facts && software::fetch lustre-client; }

lustre_client::install() {
  local kernel names
  release::facts
  kernel=$(uname -r)
  lustre_client::knows_kernel "$kernel" ||
    step::fail "kernel $kernel has no Lustre client in release $CLUSTER_RELEASE, which knows: ${RELEASE["kernel.provides.$NODE_OS"]}"
  # On Ubuntu the package of the modules is named after its kernel; the one without it would follow the newest kernel.
  names=${RELEASE['lustre-client.packages']:-}
  RELEASE['lustre-client.packages']=${names//lustre-client-modules-aws/lustre-client-modules-$kernel lustre-client-utils}
  software::install lustre-client
  software::clean lustre-client
}

lustre_client::verify() {
  local module
  release::facts
  module=$(software::module lustre)
  [[ -n $module ]] || step::fail "no Lustre module for kernel $(uname -r)"
  lustre_client::knows_kernel "$(uname -r)" || log::warn "kernel $(uname -r) is not in the Lustre matrix of release $CLUSTER_RELEASE"
  software::proven lustre-client "$module" "for kernel $(uname -r)"
}
