# shellcheck shell=bash
# Libraries: software version
# The Lustre client of FSx: a module for the running kernel, and mount.lustre. Its modules are built for one kernel each; a
# kernel that the release does not know is tried. On Kubernetes over TCP the container of the CSI driver mounts and needs
# the module alone; a node without it still takes pods that need no Lustre.

lustre_client::detect() {
  local module
  software::for lustre-client compute login controller
  [[ -n ${LUSTRE_PATH:-} || -n ${NODE_BAKE:-} ]] || step::not_applicable "cluster.json names no Lustre file system"
  # From AL2023's 6.18.51 on its file ends in .ko.zst: modinfo finds it, whatever its name.
  module=$(software::module lustre)
  if lustre_client::is_for_pods; then
    [[ -n $module ]] || step::absent "no Lustre module for kernel $(uname -r)"
    step::present "module $module"
  fi
  software::settle lustre-client "$module"
  lustre_client::has_mount || step::absent "no mount.lustre"
  step::present "Lustre $module"
}

lustre_client::is_on_kubernetes() {
  [[ $NODE_FAMILY == hyperpod-eks || $NODE_FAMILY == eks-al2023 ]]
}

lustre_client::is_for_pods() {
  lustre_client::is_on_kubernetes && [[ -z ${LUSTRE_EFA:-} ]]
}

lustre_client::has_mount() {
  [[ -e $ULTRACLUSTER_ROOT/sbin/mount.lustre || -e $ULTRACLUSTER_ROOT/usr/sbin/mount.lustre ]]
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

lustre_client::needs() { echo lustre-client; }

lustre_client::install() {
  local kernel names said cause
  kernel=$(uname -r)
  # On Ubuntu the package of the modules is named after its kernel; the one without it would follow the newest kernel.
  names=${RELEASE['lustre-client.packages']:-}
  RELEASE['lustre-client.packages']=${names//lustre-client-modules-aws/lustre-client-modules-$kernel lustre-client-utils}
  # What it says on the way, and why it failed, with the kernel in it
  if said=$( (software::install lustre-client 1>&2) 3>&1); then
    [[ -z $said ]] || printf '%s\n' "$said" >&3
    software::clean lustre-client
    return 0
  fi
  cause=$(sed -n '/^\(cause\|message\) /{s///p;q;}' <<<"$said")
  lustre_client::knows_kernel "$kernel" ||
    cause+="; release $CLUSTER_RELEASE knows Lustre clients for ${RELEASE["kernel.provides.$NODE_OS"]}: choose an image with such a kernel"
  lustre_client::lacks "no Lustre client for kernel $kernel: ${cause:-the installation ended without a reason}"
}

# lustre_client::lacks REASON: ends the verb. Only where the host mounts, the node cannot be without it.
lustre_client::lacks() {
  lustre_client::is_on_kubernetes || step::fail "$1"
  step::component lustre-client degraded "$(software::module lustre)" "${RELEASE['lustre-client.version']:-}" "$1"
  exit 0
}

lustre_client::verify() {
  local module
  module=$(software::module lustre)
  [[ -n $module ]] || lustre_client::lacks "no Lustre module for kernel $(uname -r)"
  lustre_client::knows_kernel "$(uname -r)" || log::warn "kernel $(uname -r) is not in the Lustre matrix of release $CLUSTER_RELEASE"
  if lustre_client::is_for_pods; then
    [[ -n ${NODE_BAKE:-} ]] || modprobe lustre || lustre_client::lacks "the Lustre module $module does not load on kernel $(uname -r)"
    software::proven lustre-client "$module" "for kernel $(uname -r); the container of the CSI driver mounts"
    return
  fi
  lustre_client::has_mount || lustre_client::lacks "no mount.lustre after the set-up"
  software::proven lustre-client "$module" "for kernel $(uname -r)"
}
