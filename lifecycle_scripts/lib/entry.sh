# shellcheck shell=bash
# What every entry script does around its steps.
[[ -z ${ULTRACLUSTER_LIB_ENTRY:-} ]] || return 0
ULTRACLUSTER_LIB_ENTRY=1

umask 022 # a hardened image has another, with which users could not read what is installed

ULTRACLUSTER_HOME=$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)
export ULTRACLUSTER_HOME
for library in log lock node step steps release clock report fetch files state; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done

ENTRY_NAME='' ENTRY_SAID='' ENTRY_LOST='' ENTRY_OLDER='' ENTRY_DEGRADED=() ENTRY_LOOKED_AHEAD=''
# Downloads that run: process by step
declare -A ENTRY_FETCHES=()
# By step, a line "COMPONENT VERDICT FOUND" for each component whose files it needs
readonly ENTRY_NEEDS=$ULTRACLUSTER_ROOT/run/ultracluster/needs
clock::now ENTRY_STARTED

# entry::run ENTRY [--group NAME]: the steps of lib/steps.sh for this entry.
entry::run() {
  local -r name=$1
  shift
  local steps
  mapfile -t steps < <(steps::of "$name")
  ENTRY_NAME=$name
  export ULTRACLUSTER_ENTRY=$name # for steps
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

# What an earlier entry of the same node was without, and what stayed older (STEPS_NOT_LAST)
readonly ENTRY_EARLIER=$ULTRACLUSTER_ROOT/run/ultracluster/degraded-earlier

# entry::main STEP...: runs the steps in this order. One that the node cannot be without ends the run when it fails; without
# others the node is degraded.
entry::main() {
  local step minutes
  export LC_ALL=C
  # A test's PATH is its own.
  [[ -n $ULTRACLUSTER_ROOT ]] || entry::path
  ENTRY_STAGE=start
  trap entry::at_exit EXIT
  trap entry::stopped TERM INT HUP

  ENTRY_IDENTIFY=${ENTRY_IDENTIFY:-entry::identify_hyperpod}
  if [[ $ENTRY_IDENTIFY == entry::identify_hyperpod && ! -e $RESOURCE_CONFIG ]]; then
    log::info "no $RESOURCE_CONFIG: an image is being built, nothing to do"
    return 0
  fi

  ENTRY_STAGE=lock
  # An orchestrator may try again while the first try still works: that one ends within the time of a run.
  steps::run_minutes minutes "$ENTRY_NAME"
  lock::hold run "${ULTRACLUSTER_RUN_DEADLINE:-$((60 * minutes))}" ||
    entry::fail "another run of these scripts does not end"
  export ULTRACLUSTER_LOCK=$LOCK_DESCRIPTOR
  [[ ! -e $REPORT_READY ]] || rm -f -- "$REPORT_READY"
  fetch::forget
  ENTRY_STAGE=node
  command -v python3 >/dev/null || entry::fail "this image has no python3, with which the scripts read their configuration"
  "$ENTRY_IDENTIFY" || entry::fail "${NODE_ERROR:-this node could not be identified}"
  steps::run_minutes minutes "$ENTRY_NAME"
  verb::begin_run "$ENTRY_STARTED" "$minutes"
  entry::with_own "$@"
  set -- "${ENTRY_LEFT[@]}"
  if steps::need_release "$@"; then
    ENTRY_STAGE=release
    release::load || entry::fail "$RELEASE_ERROR"
    release::facts
  fi
  # shellcheck disable=SC2034 # step.sh reads it
  STEP_BEFORE_INSTALL=entry::files_for
  for step in "$@"; do
    ENTRY_STAGE=$step
    step::run "$step" || entry::fail "$STEP_MESSAGE"
    entry::note_older
    entry::note_degraded
    ENTRY_LEFT=("${ENTRY_LEFT[@]:1}")
  done
  entry::stop_fetches # of a step that could do without after all
  # Downloads and sources, also those of a run that was killed
  [[ ! -e $FILES_WORK ]] || rm -rf -- "$FILES_WORK"
  entry::end "$@"
}

# entry::with_own STEP...: sets ENTRY_LEFT, the same with the team's own steps in the place of `own`.
entry::with_own() {
  local step own
  ENTRY_LEFT=()
  for step in "$@"; do
    [[ $step == own ]] || { ENTRY_LEFT+=("$step") && continue; }
    for own in ${NODE_STEPS:-}; do # `proxy` of own_steps/10_proxy.sh
      own=${own#??_}
      ENTRY_LEFT+=("${own%:*}")
    done
  done
}

# A service's PATH may lack these; the AWS CLI is in /usr/local/bin.
entry::path() {
  export PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/slurm/bin:/opt/slurm/sbin
}

entry::note_degraded() {
  local component detail else_lost="not as the release has it"
  [[ $STEP_STATE == degraded ]] || return 0
  ! steps::is_own "$step" || else_lost="a step of your own"
  for component in "${STEP_LACKS[@]}"; do
    read -r _ _ _ detail <<<"${STEP_COMPONENTS[$component]}"
    ENTRY_DEGRADED+=("$component")
    ENTRY_LOST+="${ENTRY_LOST:+; }$component: ${CONTRACT_LOST[$component]:-$else_lost} ($detail)"
  done
}

# What stays although the release has a newer one (software::drift)
entry::note_older() {
  local component outcome found preferred detail
  for component in "${!STEP_COMPONENTS[@]}"; do
    read -r outcome found preferred detail <<<"${STEP_COMPONENTS[$component]}"
    [[ $outcome:$detail == kept:kept-older:* ]] || continue
    ENTRY_OLDER+="${ENTRY_OLDER:+, }$component $found (the release has $preferred)"
  done
}

# entry::end STEP...: the run did not fail. Its last line, and the file that says so until the next run.
entry::end() {
  local seconds state=ready names earlier=() older reason
  if [[ " $STEPS_NOT_LAST " == *" $ENTRY_NAME "* ]]; then
    printf '%s\n' "${ENTRY_DEGRADED[@]}" "$ENTRY_LOST" "$ENTRY_OLDER" >"$ENTRY_EARLIER"
  elif [[ -e $ENTRY_EARLIER ]]; then
    mapfile -t earlier <"$ENTRY_EARLIER"
    ENTRY_DEGRADED=("${earlier[@]:0:${#earlier[@]}-2}" "${ENTRY_DEGRADED[@]}")
    entry::join ENTRY_LOST '; ' "${earlier[-2]}" "$ENTRY_LOST"
    entry::join ENTRY_OLDER ', ' "${earlier[-1]}" "$ENTRY_OLDER"
    rm -f -- "$ENTRY_EARLIER"
  fi
  ((${#ENTRY_DEGRADED[@]} == 0)) || state=degraded
  state::tell "$ENTRY_NAME" "$state"
  entry::seconds seconds
  older=${ENTRY_OLDER:+keeps older $ENTRY_OLDER}
  entry::join reason '; ' "$ENTRY_LOST" "$older"
  entry::report "$state" "$seconds" "$reason"
  if [[ $state == degraded ]]; then
    printf -v names '%s, ' "${ENTRY_DEGRADED[@]}"
    log::degraded "${names%, }" "$reason"
  else
    log::ready "after $seconds s${older:+, $older}: $*"
  fi
}

# entry::join VARIABLE MARK A B: both, where both are there
entry::join() { printf -v "$1" '%s' "$3${3:+${4:+$2}}$4"; }

# entry::report STATE SECONDS REASON
entry::report() {
  local -r ready=$REPORT_READY
  report::run "$ENTRY_NAME" "$1" "$2" "$3" "${ENTRY_DEGRADED[@]}"
  [[ " $STEPS_NOT_LAST " != *" $ENTRY_NAME "* ]] || rm -f -- "$ready"
}

# entry::seconds VARIABLE: that the run has taken
entry::seconds() {
  local now
  clock::now now
  clock::to_seconds "$1" "$((now - ENTRY_STARTED))"
}

# entry::files_for STEP: called before its installation; returns when its files are here or lost. The first step that may have something
# to download makes all later ones download theirs, too: beside each other, and beside the steps that need no file.
entry::files_for() {
  local component
  entry::may_download "$1" || return 0
  [[ -n $ENTRY_LOOKED_AHEAD ]] || entry::look_ahead
  [[ -s $ENTRY_NEEDS/$1 ]] || return 0
  [[ -z ${ENTRY_FETCHES[$1]:-} ]] || wait "${ENTRY_FETCHES[$1]}" || true
  unset "ENTRY_FETCHES[$1]"
  while read -r component _; do
    [[ ! -e $FETCH_LOST/$component ]] || verbs+=(fetch=failed) # of step::run
  done <"$ENTRY_NEEDS/$1"
}

# A team's own steps have no files of the release.
entry::may_download() {
  ! steps::is_own "$1" && [[ $(<"$ULTRACLUSTER_HOME/steps/$1.sh") == *"$1::needs()"* ]]
}

# What this and later steps need is asked of all at once, and downloaded. A file that a node cannot be without is waited for here: should
# it not come, the run ends before anything is installed.
entry::look_ahead() {
  local step required=()
  ENTRY_LOOKED_AHEAD=yes
  rm -rf -- "$ENTRY_NEEDS"
  mkdir -p "$ENTRY_NEEDS" "$FETCH_LOST"
  for step in "${ENTRY_LEFT[@]}"; do
    entry::may_download "$step" || continue
    entry::look "$step" &
    ENTRY_FETCHES[$step]=$!
  done
  for step in "${!ENTRY_FETCHES[@]}"; do
    wait "${ENTRY_FETCHES[$step]}" || true
    unset "ENTRY_FETCHES[$step]"
  done
  for step in "${ENTRY_LEFT[@]}"; do
    [[ -s $ENTRY_NEEDS/$step ]] || continue
    log::info "downloading for $step"
    entry::fetch "$step" &
    ENTRY_FETCHES[$step]=$!
    [[ $(<"$ENTRY_NEEDS/$step") != *' refused'* ]] || required+=("$!")
  done
  while entry::any_runs "${required[@]}"; do
    wait -n "${required[@]}" || true
    entry::look_for_refused
  done
  entry::look_for_refused
}

entry::any_runs() {
  local process
  for process in "$@"; do
    ! kill -0 "$process" 2>/dev/null || return 0
  done
  return 1
}

# entry::background: what a process of its own begins with
entry::background() {
  local now
  trap 'verb::stop; exit 143' TERM
  trap - EXIT
  # shellcheck disable=SC2034 # verb.sh reads them
  declare -gA STEP_COMPONENTS=() STEP_INSTALLS=()
  STEP_ABOUT='' STEP_MESSAGE=''
  clock::now now
  verb::budget "$1" "$now"
}

# entry::look STEP: writes what it needs, and what it would mean that this does not come.
entry::look() {
  local component found
  entry::background "$1"
  step::verb "$1" needs
  for component in "${STEP_NEEDS[@]}"; do
    read -r _ found _ <<<"${STEP_COMPONENTS[$component]:-}"
    step::verdict "$1" "$component" "${found#-}"
    printf '%s %s %s\n' "$component" "$CONTRACT_VERDICT" "${found:--}"
  done >"$ENTRY_NEEDS/$1"
}

# entry::fetch STEP: what it needs
entry::fetch() {
  local component components=()
  while read -r component _; do components+=("$component"); done <"$ENTRY_NEEDS/$1"
  entry::background "$1"
  # shellcheck disable=SC2034 # verb.sh reads it
  [[ $(<"$ENTRY_NEEDS/$1") != *' refused'* ]] || VERB_REFUSED=yes
  step::verb "$1" fetch "${components[@]}"
  ((STEP_STATUS == 0)) || printf '%s\n' "$STEP_MESSAGE" >"$FETCH_LOST/${STEP_ABOUT:-${components[0]}}"
}

# A lost file that the node cannot be without ends the run, and with it the other downloads.
entry::look_for_refused() {
  local step component verdict found cause
  for step in "${ENTRY_LEFT[@]}"; do
    [[ -s $ENTRY_NEEDS/$step ]] || continue
    while read -r component verdict found; do
      [[ $verdict == refused && -s $FETCH_LOST/$component ]] || continue
      cause=$(<"$FETCH_LOST/$component")
      entry::stop_fetches
      ENTRY_STAGE=$step
      declare -gA STEP_COMPONENTS=([$component]="refused $found ${RELEASE["$component.version"]:--} $cause")
      report::step "$step" failed "${found#-}" 0 "$cause" detect=absent fetch=failed
      entry::fail "$cause"
    done <"$ENTRY_NEEDS/$step"
  done
}

entry::stop_fetches() {
  local running
  mapfile -t running <<<"$(jobs -pr)"
  [[ -n ${running[0]} ]] || return 0
  kill -TERM "${running[@]}" 2>/dev/null || true
  wait "${running[@]}" 2>/dev/null || true
}

entry::fail() {
  entry::say "$1"
  # HyperPod uploads the log while the script lives: the end of it would be lost.
  sleep "${ULTRACLUSTER_LINGER:-60}"
  exit 1
}

# What runs now is stopped first: it must not have the last word.
entry::stopped() {
  trap '' TERM INT HUP
  verb::stop
  entry::stop_fetches
  entry::say "stopped by a signal"
  exit 143
}

entry::say() {
  local seconds
  ENTRY_SAID=yes
  entry::seconds seconds
  entry::report failed "$seconds" "$ENTRY_STAGE: $1"
  log::failed "$ENTRY_STAGE" "$1"
}

entry::at_exit() {
  local -r status=$?
  ((status != 0)) || return 0
  [[ -z $ENTRY_SAID ]] || return 0
  entry::say "stopped with status $status: an error in the scripts themselves"
  sleep "${ULTRACLUSTER_LINGER:-60}"
}
