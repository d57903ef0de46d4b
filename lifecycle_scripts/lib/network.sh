# shellcheck shell=bash
# Name resolution can be down for the first seconds of a HyperPod node: wait for it, no longer than needed.
[[ -z ${ULTRACLUSTER_LIB_NETWORK:-} ]] || return 0
ULTRACLUSTER_LIB_NETWORK=1

# shellcheck source-path=SCRIPTDIR source=retry.sh
source "${BASH_SOURCE[0]%/*}/retry.sh"

# network::wait_for NAME: until the resolver answers for it.
network::wait_for() {
  local -r name=$1 deadline=${ULTRACLUSTER_DNS_DEADLINE:-180}
  retry::run "$deadline" network::resolves "$name" && return 0
  log::error "the name $name was not resolved within $deadline s"
  return 1
}

network::resolves() {
  timeout 10 getent ahosts "$1" >/dev/null
}
