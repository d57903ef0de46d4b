# shellcheck shell=bash
# What verbs say and how they end; file descriptor 3 leads to `step::verb` (verb.sh).
[[ -z ${ULTRACLUSTER_LIB_ANSWER:-} ]] || return 0
ULTRACLUSTER_LIB_ANSWER=1

# The status of `detect` where something is to be installed, and where this node does not need it
readonly STEP_ABSENT=10 STEP_SKIPPED=20

step::say() { printf '%s %s\n' "$1" "${2//$'\n'/ }" >&3; }
step::version() { step::say version "$1"; }
# What is here, or what is to do
step::message() { step::say message "$1"; }
# Which component of the release the following lines are about
step::about() { step::say about "$1"; }
# step::component NAME kept|degraded|not-needed|lacks|installed FOUND PREFERRED DETAIL: `lacks` is to be installed
step::component() {
  local found=${3//[[:space:]]/_} preferred=${4//[[:space:]]/_}
  [[ $found == [0-9]* ]] || found=-
  step::say component "$1 $2 $found ${preferred:--} ${5:-}"
}

# detect: it is here and right
step::present() { step::finish 0 "$@"; }
# detect: it has to be installed
step::absent() { step::finish "$STEP_ABSENT" "$@"; }
# detect: this node does not need it
step::not_applicable() { step::finish "$STEP_SKIPPED" "$@"; }
# any verb: it cannot work, and this is why
step::fail() {
  step::say cause "$*"
  exit 1
}

step::finish() {
  local -r status=$1
  shift
  (($# == 0)) || step::message "$*"
  exit "$status"
}
