# shellcheck shell=bash
# What every entry script does around its steps.
[[ -z ${ULTRACLUSTER_LIB_ENTRY:-} ]] || return 0
ULTRACLUSTER_LIB_ENTRY=1

ULTRACLUSTER_HOME=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
export ULTRACLUSTER_HOME
for library in log lock node step steps release; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

# entry::run ENTRY [--group NAME]: the steps of lib/steps.sh for this entry.
entry::run() {
  local -r name=$1
  shift
  local steps
  mapfile -t steps < <(steps::of "$name")
  ENTRY_IDENTIFY=entry::identify_${name%%_*}
  ENTRY_GROUP=
  case $# in
    0) ;;
    2) [[ $1 != --group ]] || ENTRY_GROUP=$2 ;;&
    *) [[ -n $ENTRY_GROUP ]] || { echo "usage: ${0##*/} [--group NAME]" >&2 && exit 2; } ;;
  esac
  # Only HyperPod uploads the log while the script lives.
  [[ $name == hyperpod_* ]] || export ULTRACLUSTER_LINGER=${ULTRACLUSTER_LINGER:-0}
  entry::main "${steps[@]}"
}

# The node's role is in the orchestrator's own files; where none tells, in the group that cluster.json has for it.

entry::identify_hyperpod() { node::load; }

# Written before any custom action (cookbook of ParallelCluster, cfnconfig).
entry::identify_parallelcluster() {
  local -r file=$ULTRACLUSTER_ROOT/etc/parallelcluster/cfnconfig
  local role
  case $(sed -n 's/^cfn_node_type=//p' "$file" 2>/dev/null) in
    HeadNode) role=controller ;;
    LoginNode) role=login ;;
    ComputeFleet) role=compute ;;
    *)
      NODE_ERROR="$file does not tell the node's type"
      return 1
      ;;
  esac
  node::load_here "$role" "$ENTRY_GROUP"
}

# Its agent's files say nothing of roles: a login node is a compute node group like any other.
entry::identify_pcs() { node::load_here "" "$ENTRY_GROUP"; }

entry::identify_eks() { node::load_here compute "$ENTRY_GROUP"; }

# Set by bake.sh.
entry::identify_bake() {
  image_family::load
  NODE_FAMILY=${BAKE_FAMILY:-$NODE_FAMILY}
}

# entry::main STEP...: runs the steps in this order; the first that fails ends the run.
entry::main() {
  local step
  export LC_ALL=C
  # A service's PATH may lack these; a test's PATH is its own.
  [[ -n $ULTRACLUSTER_ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/opt/slurm/bin:/opt/slurm/sbin
  ENTRY_STAGE=start ENTRY_SAID=
  trap entry::at_exit EXIT
  trap 'entry::say "stopped by a signal"; exit 143' TERM INT HUP

  ENTRY_IDENTIFY=${ENTRY_IDENTIFY:-entry::identify_hyperpod}
  if [[ $ENTRY_IDENTIFY == entry::identify_hyperpod && ! -e $(node::resource_config) ]]; then
    log::info "no $(node::resource_config): an image is being built, nothing to do"
    return 0
  fi

  ENTRY_STAGE=lock
  lock::hold run "${ULTRACLUSTER_RUN_DEADLINE:-900}" || entry::fail "another run of these scripts does not end"
  ENTRY_STAGE=node
  "$ENTRY_IDENTIFY" || entry::fail "${NODE_ERROR:-this node could not be identified}"
  if steps::need_release "$@"; then
    ENTRY_STAGE=release
    release::load || entry::fail "$RELEASE_ERROR"
  fi
  ENTRY_LEFT=("$@")
  STEP_BEFORE_INSTALL=entry::fetch_ahead
  for step in "$@"; do
    ENTRY_STAGE=$step
    step::run "$step" || entry::fail "$STEP_MESSAGE"
    ENTRY_LEFT=("${ENTRY_LEFT[@]:1}")
  done
  # Downloads and sources, also those of a run that was killed
  rm -rf -- "$ULTRACLUSTER_ROOT/var/tmp/ultracluster"
  log::info "done: $*"
}

# The first step that has something to install: what it and the later ones have to download comes now, all at once. What
# does not come is told at once, too, before anything is installed.
entry::fetch_ahead() {
  local step index pids=()
  # shellcheck disable=SC2034 # step.sh reads it
  STEP_BEFORE_INSTALL=
  steps::need_release "${ENTRY_LEFT[@]}" || return 0
  log::info "downloading what this and later steps install"
  for step in "${ENTRY_LEFT[@]}"; do
    (
      step::verb "$step" fetch
      ((STEP_STATUS == 0)) || printf '%s' "$STEP_MESSAGE" >"$ULTRACLUSTER_ROOT/run/ultracluster/fetch-$step"
      exit "$STEP_STATUS"
    ) &
    pids+=("$!")
  done
  for index in "${!pids[@]}"; do
    wait "${pids[$index]}" && continue
    ENTRY_STAGE=${ENTRY_LEFT[$index]}
    entry::fail "$(cat "$ULTRACLUSTER_ROOT/run/ultracluster/fetch-$ENTRY_STAGE" 2>/dev/null || echo "its files could not be downloaded")"
  done
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
