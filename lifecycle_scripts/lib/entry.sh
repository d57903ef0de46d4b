# shellcheck shell=bash
# What every entry script does around its steps.
[[ -z ${ULTRACLUSTER_LIB_ENTRY:-} ]] || return 0
ULTRACLUSTER_LIB_ENTRY=1

ULTRACLUSTER_HOME=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
export ULTRACLUSTER_HOME
for library in log lock node step; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

# entry::main STEP...: runs the steps in this order; the first that fails ends the run.
entry::main() {
  local step
  export LC_ALL=C
  # A service's PATH may lack these; a test's PATH is its own.
  [[ -n $ULTRACLUSTER_ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/opt/slurm/bin:/opt/slurm/sbin
  ENTRY_STAGE=start ENTRY_SAID=
  trap entry::at_exit EXIT
  trap 'entry::say "stopped by a signal"; exit 143' TERM INT HUP

  if [[ ! -e $(node::resource_config) ]]; then
    log::info "no $(node::resource_config): an image is being built, nothing to do"
    return 0
  fi

  ENTRY_STAGE=lock
  lock::hold run "${ULTRACLUSTER_RUN_DEADLINE:-900}" || entry::fail "another run of these scripts does not end"
  ENTRY_STAGE=node
  node::load || entry::fail "${NODE_ERROR:-this node could not be identified}"
  for step in "$@"; do
    ENTRY_STAGE=$step
    step::run "$step" || entry::fail "$STEP_MESSAGE"
  done
  log::info "done: $*"
}

entry::fail() {
  entry::say "$1"
  # HyperPod uploads the log while the script lives: the end of it would be lost.
  sleep "${ULTRACLUSTER_LINGER:-60}"
  exit 1
}

entry::say() {
  ENTRY_SAID=yes
  log::failed "$ENTRY_STAGE" "$1"
}

entry::at_exit() {
  local -r status=$?
  ((status != 0)) || return 0
  [[ -z $ENTRY_SAID ]] || return 0
  entry::say "stopped with status $status: an error in the scripts themselves"
  sleep "${ULTRACLUSTER_LINGER:-60}"
}
