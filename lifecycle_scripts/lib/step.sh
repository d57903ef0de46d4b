# shellcheck shell=bash
# The frame around a step: detect, install when needed, verify always, report.
[[ -z ${ULTRACLUSTER_LIB_STEP:-} ]] || return 0
ULTRACLUSTER_LIB_STEP=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/log.sh"
# shellcheck source-path=SCRIPTDIR source=clock.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/clock.sh"
# shellcheck source-path=SCRIPTDIR source=report.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/report.sh"

readonly STEP_ABSENT=10 STEP_SKIPPED=20

# step::run NAME: status 0 when the step is in place or not for this node; else STEP_MESSAGE says why not.
step::run() {
  local -r name=$1
  local state=failed started ended seconds verbs=()
  STEP_VERSION='' STEP_MESSAGE=''
  clock::now started

  step::verb "$name" detect
  case $STEP_STATUS in
    0)
      verbs+=(detect=present)
      step::check "$name" && state=already
      ;;
    "$STEP_ABSENT")
      verbs+=(detect=absent)
      [[ -z ${STEP_BEFORE_INSTALL:-} ]] || "$STEP_BEFORE_INSTALL" "$name"
      step::verb "$name" install
      if ((STEP_STATUS == 0)); then
        verbs+=(install=ok)
        step::check "$name" && state=installed
      else
        verbs+=(install=failed)
      fi
      ;;
    "$STEP_SKIPPED")
      verbs+=(detect=not-applicable)
      state=skipped
      ;;
    *) verbs+=(detect=failed) ;;
  esac

  clock::now ended
  clock::to_seconds seconds "$((ended - started))"
  report::step "$name" "$state" "$STEP_VERSION" "$seconds" "$STEP_MESSAGE" "${verbs[@]}"
  [[ $state != failed ]] || return 1
  log::info "$name: $state in $seconds s${STEP_MESSAGE:+: $STEP_MESSAGE}"
}

step::check() {
  step::verb "$1" verify
  if ((STEP_STATUS == 0)); then
    verbs+=(verify=ok)
  else
    verbs+=(verify=failed)
    return 1
  fi
}

# Runs NAME::VERB in a process of its own: there `set -e` holds, whatever surrounds this call.
# Sets STEP_STATUS, and STEP_VERSION and STEP_MESSAGE if the verb told them.
step::verb() {
  local -r name=$1 verb=$2
  local -r answer=$ULTRACLUSTER_ROOT/run/ultracluster/answer-$name
  local key value
  mkdir -p "${answer%/*}"
  STEP_STATUS=0
  LOG_PIPED=1 LOG_STEP=$name bash "$ULTRACLUSTER_HOME/lib/run_verb.sh" "$name" "$verb" 3>"$answer" 2>&1 |
    log::copy || STEP_STATUS=${PIPESTATUS[0]}
  local told=
  while IFS=' ' read -r key value; do
    case $key in
      version) STEP_VERSION=$value ;;
      # The first message is the one nearest to the cause.
      message) told=${told:-$value} ;;
    esac
  done <"$answer"
  case $STEP_STATUS in
    0 | "$STEP_ABSENT" | "$STEP_SKIPPED") STEP_MESSAGE=${told:-$STEP_MESSAGE} ;;
    *) STEP_MESSAGE=${told:-$verb ended with status $STEP_STATUS} ;;
  esac
}

# What verbs say and how they end. File descriptor 3 leads to `step::verb`.

step::version() { printf 'version %s\n' "${1//$'\n'/ }" >&3; }
step::message() { printf 'message %s\n' "${1//$'\n'/ }" >&3; }

# detect: it is here and right
step::present() { step::finish 0 "$@"; }
# detect: it has to be installed
step::absent() { step::finish "$STEP_ABSENT" "$@"; }
# detect: this node does not need it
step::not_applicable() { step::finish "$STEP_SKIPPED" "$@"; }
# any verb: it cannot work
step::fail() { step::finish 1 "$@"; }

step::finish() {
  local -r status=$1
  shift
  (($# == 0)) || step::message "$*"
  exit "$status"
}
