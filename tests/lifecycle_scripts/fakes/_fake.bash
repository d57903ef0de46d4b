# shellcheck shell=bash
# What all fakes share: calls are recorded in $FAKE/calls, those that change something also in $FAKE/changes.
# $KILL_AT (before:N, inside:N, after:N) kills the run and all its children at the Nth change, as kill -9 does.
set -euo pipefail

COMMAND=${0##*/}
printf '%s\n' "$COMMAND $*" >>"$FAKE/calls"

change() {
  # Downloads run side by side: each change has a number of its own.
  exec 9>>"$FAKE/numbers"
  flock 9
  printf '%s\n' "$COMMAND $*" >>"$FAKE/changes"
  CHANGE=$(wc -l <"$FAKE/changes")
  exec 9>&-
  kill_at before
  trap 'kill_at after' EXIT
}

kill_at() {
  [[ ${KILL_AT:-} == "$1:$CHANGE" ]] || return 0
  local session
  read -r _ _ _ _ _ session _ </proc/$$/stat
  "$PKILL" -KILL --session "$session"
}

fail() {
  printf '%s: %s\n' "$COMMAND" "$1" >&2
  exit 1
}
