# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034 # associative arrays, and what step.sh reads
# One verb of a step as a process of its own, within its time: what it says on file descriptor 3, and what it prints.
[[ -z ${ULTRACLUSTER_LIB_VERB:-} ]] || return 0
ULTRACLUSTER_LIB_VERB=1

for library in log clock steps lock answer; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$library.sh"
done

# When the run has to be over, in milliseconds of the clock; 0 without a limit
VERB_RUN_END=0

# verb::begin_run NOW MINUTES
verb::begin_run() {
  VERB_RUN_MINUTES=$2
  VERB_RUN_END=$(($1 + ${ULTRACLUSTER_RUN_MS:-$2 * 60000}))
}

# verb::budget STEP NOW: the step's time begins.
verb::budget() {
  VERB_STEP_MINUTES=${STEPS_MINUTES[$1]:-$STEPS_MINUTES_ELSE}
  VERB_STEP_END=$(($2 + ${ULTRACLUSTER_STEP_MS:-VERB_STEP_MINUTES * 60000}))
}

# verb::time STEP VERB: sets VERB_MS, what is left for it. When the run's time is used up, nothing is installed any more, but a
# look at what is here (a minute for each of its verbs) still is: the node may have all that it needs. What protects a node has its
# minute in any case. A download has half of what is left of the run, and so has the patience with repositories (VERB_PATIENCE, ms);
# an installation has four fifths: the rest is for all other steps. Only what the node cannot be without may take all (VERB_REFUSED).
verb::time() {
  local now left least=60000 share=100
  clock::now now
  VERB_MS=$((VERB_STEP_END - now)) VERB_LATE="the step did not end within $VERB_STEP_MINUTES min"
  if ((VERB_RUN_END > 0)); then
    left=$((VERB_RUN_END - now))
    case $2 in
      fetch) [[ -n ${VERB_REFUSED:-} ]] || share=50 ;;
      install) steps::is_required "$1" || share=80 ;;
    esac
    ((left > 0)) || share=100
    if ((left * share / 100 < VERB_MS)); then
      VERB_MS=$((left * share / 100)) VERB_LATE="the run's $VERB_RUN_MINUTES min are used up"
      ((share == 100)) || VERB_LATE="it did not end within $share % of what was left of the run's $VERB_RUN_MINUTES min"
      [[ $2 != look ]] || least=120000
      { [[ $2 == install || $2 == fetch ]] && ! steps::protects "$1"; } || ((left >= least)) || VERB_MS=$least
    fi
  fi
  # A tenth is for the words on what did not come.
  VERB_PATIENCE=$((VERB_MS * 9 / 10))
  [[ $2 != install ]] || ((VERB_RUN_END == 0 || left / 2 >= VERB_PATIENCE)) || VERB_PATIENCE=$((left > 0 ? left / 2 : 0))
}

# verb::deadlines: sets VERB_DEADLINES, variables for the verb: a wait for a server or the package manager ends before its time does.
verb::deadlines() {
  local name default ms seconds
  VERB_DEADLINES=()
  for name in FETCH:600 PACKAGES:300; do
    default=${name#*:} name=ULTRACLUSTER_${name%:*}_DEADLINE
    clock::to_ms ms "${!name:-$default}"
    ((ms > VERB_PATIENCE)) || continue
    clock::to_seconds seconds "$VERB_PATIENCE"
    ((VERB_PATIENCE < 1000)) || seconds=${seconds%.*}
    VERB_DEADLINES+=("$name=$seconds")
  done
}

# step::verb NAME VERB [COMPONENT...]: runs NAME::VERB in a process of its own: there `set -e` holds, whatever surrounds this call.
# `look` is `detect` and, where that finds what it looks for, `verify`. Sets STEP_STATUS, STEP_VERB (which verb it is of), and
# STEP_MESSAGE: the cause when it failed, else its message. `needs` sets STEP_NEEDS.
step::verb() {
  local -r name=$1 verb=$2
  # A download may still run when the step looks.
  local -r answer=$ULTRACLUSTER_ROOT/run/ultracluster/answer-$name-$verb
  local seconds started ended told='' cause=''
  STEP_STATUS=0 STEP_VERB=${verb/look/detect} STEP_NEEDS=()
  verb::time "$name" "$verb"
  if ((VERB_MS <= 0)); then
    STEP_STATUS=1 STEP_MESSAGE="$VERB_LATE"
    return 0
  fi
  [[ -d ${answer%/*} ]] || mkdir -p "${answer%/*}"
  clock::now started
  clock::to_seconds seconds "$VERB_MS"
  verb::run "$seconds" "$answer" "$@"
  verb::heard "$answer"
  clock::now ended
  case $STEP_STATUS in
    0 | "$STEP_ABSENT" | "$STEP_SKIPPED") STEP_MESSAGE=${told:-$STEP_MESSAGE} ;;
    124 | 137)
      ((ended - started + 20 < VERB_MS)) || cause=$VERB_LATE # two moves of the clock
      STEP_MESSAGE=${cause:-$STEP_VERB ended with status $STEP_STATUS}
      ;;
    *) STEP_MESSAGE=${cause:-${told:-$STEP_VERB ended with status $STEP_STATUS}} ;;
  esac
}

# verb::run SECONDS ANSWER STEP VERB [COMPONENT...]
# `timeout` gives the verb a process group of its own, and holds the lock of this run as long as the verb lives; what the verb
# leaves running holds neither the lock nor this run.
verb::run() {
  local -r seconds=$1 answer=$2
  local -r mark=$'\036'"end of $3 $4 $BASHPID.$RANDOM"
  local output copier
  shift 2
  verb::deadlines
  exec {output}> >(lock::let_go && log::copy "$mark")
  copier=$!
  # shellcheck disable=SC2094 # the answer is read when the verb has ended
  (
    ((${#VERB_DEADLINES[@]} == 0)) || export "${VERB_DEADLINES[@]}"
    LOG_PIPED=1 LOG_STEP=$1 exec timeout --kill-after=5 "$seconds" bash "$ULTRACLUSTER_HOME/lib/run_verb.sh" "$@"
  ) 3>"$answer" >&"$output" 2>&1 </dev/null {output}>&- &
  VERB_RUNNING=$!
  wait "$VERB_RUNNING" || STEP_STATUS=$?
  VERB_RUNNING=''
  printf '%s\n' "$mark" >&"$output"
  exec {output}>&-
  wait "$copier" || true
}

# verb::stop: ends the verb that runs, and what it started in its group. Called in traps, where bash may not know that the verb
# has been waited for: `wait` would then wait for the copier, which ends after this process. So it looks, for the seconds that
# `timeout` takes to kill.
verb::stop() {
  local tries
  [[ -n ${VERB_RUNNING:-} ]] || return 0
  kill -TERM "$VERB_RUNNING" 2>/dev/null || return 0
  for ((tries = 0; tries < 70; tries++)); do
    kill -0 "$VERB_RUNNING" 2>/dev/null || return 0
    sleep 0.1
  done
}

# verb::heard FILE: what the verb told, into the STEP_ variables, and told and cause of the caller.
verb::heard() {
  local key value component outcome rest
  while IFS=' ' read -r key value; do
    case $key in
      # `detect` has ended well.
      verb) STEP_MESSAGE=${told:-$STEP_MESSAGE} STEP_VERB=$value told='' cause='' ;;
      version) STEP_VERSION=$value ;;
      message) told+=${told:+; }$value ;;
      # The first is the nearest to what went wrong.
      cause) cause=${cause:-$value} ;;
      about) STEP_ABOUT=$value ;;
      installs) STEP_INSTALLS[$value]=yes ;;
      needs) STEP_NEEDS+=("$value") ;;
      component)
        read -r component outcome rest <<<"$value"
        [[ $outcome != kept || -z ${STEP_INSTALLS[$component]:-} ]] || outcome=installed
        # What an earlier verb failed at stays, and so does its cause.
        [[ ${STEP_COMPONENTS[$component]:-} == degraded* ]] || STEP_COMPONENTS[$component]="$outcome $rest"
        ;;
    esac
  done <"$1"
}
