#!/usr/bin/env bash
# run_verb.sh STEP VERB: one verb of one step, called by `step::verb`.
set -Eeuo pipefail

ULTRACLUSTER_HOME=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
for library in step retry lock packages network files fetch; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done
# shellcheck source=/dev/null
source "$ULTRACLUSTER_HOME/steps/$1.sh"

readonly VERB=$2
run_verb::stopped() {
  step::message "$VERB stopped with status $1 at: $2"
}
trap 'run_verb::stopped "$?" "$BASH_COMMAND"' ERR
"$1::$VERB"
