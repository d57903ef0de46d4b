#!/usr/bin/env bash
# run_verb.sh STEP VERB [COMPONENT...]: one verb of one step, called by `step::verb`. `look` is `detect`, and `verify` where what it
# looks for is here. `needs` states what a step with something to install would download; `fetch` downloads these components.
set -Eeuo pipefail
umask 022 # a hardened image has another, with which users could not read what is installed

ULTRACLUSTER_HOME=${ULTRACLUSTER_HOME:-$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)}
for library in log answer lock; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done
lock::let_go # held by who waits for this process

file=$ULTRACLUSTER_HOME/steps/$1.sh
# One of a team's own
[[ -e $file ]] || for file in "$ULTRACLUSTER_HOME"/own_steps/[0-9][0-9]_"$1".sh; do :; done
# Its line "# Libraries: NAME..." says what it calls: to read all of them takes longer than most looks.
libraries="files mounts packages retry"
while IFS= read -r text && [[ $text == '#'* ]]; do [[ $text != '# Libraries:'* ]] || libraries=${text#*:}; done <"$file"
for library in $libraries; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done
# shellcheck source=/dev/null
source "$file"
unset text libraries library file
# Steps of the release know its versions and files.
[[ -z ${ULTRACLUSTER_LIB_RELEASE:-} || ! -e $RELEASE_FACTS ]] || release::facts

# run_verb::run STEP VERB: what fails in it ends this shell, with the cause told.
run_verb::run() {
  RUN_VERB=$2
  declare -F "$1::$2" >/dev/null || step::fail "the step has no $1::$2"
  trap 'run_verb::stopped "$?" "$BASH_COMMAND"' ERR
  "$1::$2"
}

run_verb::stopped() {
  local why='' free
  trap - ERR # what fails in here would come here again, in a shell of its own each time
  # shellcheck source-path=SCRIPTDIR source=fetch.sh
  source "$ULTRACLUSTER_HOME/lib/fetch.sh"
  free=$(fetch::space "$ULTRACLUSTER_ROOT/") || free=''
  [[ $free != 0 ]] || why=' (the root disk is full)'
  step::say cause "${FILES_ERROR:-$RUN_VERB stopped with status $1 at: $2}$why"
}

# run_verb::detect STEP: sets DETECTED to its status. In a shell of its own: what it sets is not for other verbs.
run_verb::detect() {
  set +e
  (
    set -e
    run_verb::run "$1" detect
  )
  DETECTED=$?
  set -e
}

case $2 in
  look)
    run_verb::detect "$1"
    ((DETECTED == 0)) || exit "$DETECTED"
    step::say verb verify
    run_verb::run "$1" verify
    ;;
  needs)
    run_verb::detect "$1"
    ((DETECTED == STEP_ABSENT)) || exit 0
    needs=$(run_verb::run "$1" needs)
    for component in $needs; do
      # What comes from a repository is downloaded where it is installed.
      ((${RELEASE["$component.files"]:-0} == 0)) || step::say needs "$component"
    done
    ;;
  fetch)
    for component in "${@:3}"; do software::fetch "$component"; done
    ;;
  *) run_verb::run "$1" "$2" ;;
esac
