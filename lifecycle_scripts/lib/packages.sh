# shellcheck shell=bash
# The package manager, one user at a time. Boot-time upgrades hold the same locks: we wait for them
# (awslabs/awsome-distributed-ai#96, #235).
[[ -z ${ULTRACLUSTER_LIB_PACKAGES:-} ]] || return 0
ULTRACLUSTER_LIB_PACKAGES=1

# shellcheck source-path=SCRIPTDIR source=lock.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lock.sh"

# packages::install PACKAGE...: from the repositories that the image has configured.
packages::install() {
  if command -v apt-get >/dev/null; then
    packages::apt install "$@"
  elif command -v dnf >/dev/null; then
    packages::dnf install "$@"
  else
    log::error "neither apt-get nor dnf is on this system"
    return 1
  fi
}

# NEEDRESTART_MODE=l: needrestart lists, but does not restart slurmd under its jobs (awslabs/awsome-distributed-ai#1165).
packages::apt() (
  packages::lock
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
  apt-get -o "DPkg::Lock::Timeout=${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" -o Dpkg::Options::=--force-confold \
    --yes --no-install-recommends "$@"
)

# dnf waits for its own lock by itself.
packages::dnf() (
  packages::lock
  dnf --assumeyes --setopt=install_weak_deps=False "$@"
)

# Both callers are subshells: the lock ends with them.
packages::lock() {
  lock::hold packages "${ULTRACLUSTER_PACKAGES_DEADLINE:-300}" && return 0
  log::error "another process holds the package-manager lock"
  exit 1
}
