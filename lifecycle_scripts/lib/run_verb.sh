#!/usr/bin/env bash
# run_verb.sh STEP VERB: one verb of one step, called by `step::verb`. `fetch` is for steps that have it, and only when
# they have something to install.
set -Eeuo pipefail
umask 022 # a hardened image has another, with which users could not read what is installed

ULTRACLUSTER_HOME=${ULTRACLUSTER_HOME:-$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)}
for library in step retry lock packages network files fetch software; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done
lock::let_go # held by who waits for this process
# shellcheck source=/dev/null
source "$(steps::file "$1")"

readonly VERB=$2
run_verb::stopped() {
  local why=''
  (($(fetch::space "$ULTRACLUSTER_ROOT/") > 0)) || why=' (the root disk is full)'
  step::say cause "${FILES_ERROR:-$VERB stopped with status $1 at: $2}$why"
}
trap 'run_verb::stopped "$?" "$BASH_COMMAND"' ERR
if [[ $VERB == fetch ]]; then
  declare -F "$1::fetch" >/dev/null || exit 0
  status=0
  ("$1::detect") || status=$?
  ((status == STEP_ABSENT)) || exit 0
fi
declare -F "$1::$VERB" >/dev/null || step::fail "the step has no $1::$VERB"
"$1::$VERB"
