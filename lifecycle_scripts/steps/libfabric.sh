# shellcheck shell=bash
# Libraries: software
# Libfabric is part of the EFA installer: its version, and that no other copy comes before it.

libfabric::detect() {
  local version
  software::for libfabric compute
  ((NODE_EFA_INTERFACES > 0)) || step::not_applicable "no EFA interfaces"
  version=$(libfabric::version)
  software::settle libfabric "$version"
  step::present "libfabric $version"
}

# fi_info: 2.6.0amzn1.0 / libfabric: 2.6.0amzn1.0 / libfabric api: 2.6
libfabric::version() {
  { "$ULTRACLUSTER_ROOT/opt/amazon/efa/bin/fi_info" --version 2>/dev/null || true; } | sed -n 's/^libfabric: *//p'
}

libfabric::install() {
  step::fail "libfabric is $(libfabric::version), release $CLUSTER_RELEASE needs ${RELEASE['libfabric.version']}: it is part of the EFA installer, which has not brought it"
}

# The first that the loader knows is the one that programs get (aws/aws-ofi-nccl#889).
libfabric::verify() {
  local first
  first=$(ldconfig -p 2>/dev/null | awk '/libfabric\.so\.1 / && !found { found = $NF } END { print found }')
  case $first in
    '' | /opt/amazon/efa/*) ;;
    *) step::fail "another libfabric comes before the one of EFA: $first (remove it, or its entry in /etc/ld.so.conf.d)" ;;
  esac
  local library
  for library in "$ULTRACLUSTER_ROOT"/opt/amazon/efa/lib*/libfabric.so.1; do
    [[ ! -e $library ]] || software::readable "${library#"$ULTRACLUSTER_ROOT"}" || step::fail "users cannot read ${library#"$ULTRACLUSTER_ROOT"}: see the modes of its folders"
  done
  software::proven libfabric "$(libfabric::version)" "in /opt/amazon/efa"
}
