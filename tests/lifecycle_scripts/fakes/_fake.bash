# shellcheck shell=bash
# What all fakes share: calls are recorded in $FAKE/calls, those that change something also in $FAKE/changes.
# $KILL_AT (before:N, inside:N, after:N) kills the run and all its children at the Nth change, as kill -9 does. $KILL_DISKS is a
# folder for what a kill would leave on disk at each change: before it (N), and inside it (N.inside).
# A test calls dozens of fakes: they do with bash what it can do, and start few processes.
set -euo pipefail

COMMAND=${0##*/}
printf '%s\n' "$COMMAND $*" >>"$FAKE/calls"

change() {
  if [[ -z ${KILL_AT:-}${KILL_DISKS:-} ]]; then
    printf '%s\n' "$COMMAND $*" >>"$FAKE/changes"
    return 0
  fi
  # Downloads run side by side: each change has a number of its own.
  local changes
  exec 9>>"$FAKE/numbers"
  flock 9
  printf '%s\n' "$COMMAND $*" >>"$FAKE/changes"
  mapfile -t changes <"$FAKE/changes"
  CHANGE=${#changes[@]}
  [[ -z ${KILL_DISKS:-} ]] || disk "$CHANGE"
  exec 9>&-
  kill_at before
  trap 'kill_at after' EXIT
}

kill_at() {
  [[ -z ${KILL_DISKS:-} || $1 != inside ]] || disk "$CHANGE.inside"
  [[ -n ${KILL_AT:-} && $KILL_AT == "$1:$CHANGE" ]] || return 0
  local session
  read -r _ _ _ _ _ session _ </proc/$$/stat
  "$PKILL" -KILL --session "$session"
}

# disk NAME: a copy of root and fakes. What another process removes meanwhile is missing in it, as after a kill.
disk() {
  mkdir "$KILL_DISKS/$1"
  cp -a "$ULTRACLUSTER_ROOT" "$FAKE" "$KILL_DISKS/$1" 2>/dev/null || true
}

# value NAME [ELSE]: sets VALUE to the first line of $FAKE/NAME. Without ELSE the file has to be there.
value() {
  VALUE=${2-}
  [[ -e $FAKE/$1 || $# -eq 1 ]] || return 0
  IFS= read -r VALUE <"$FAKE/$1" || [[ -e $FAKE/$1 ]]
}

# show PATH: prints a file
show() {
  local lines
  mapfile lines <"$1"
  ((${#lines[@]} == 0)) || printf '%s' "${lines[@]}"
}

# failing NAME: $FAKE/NAME says how many calls fail from now on. Is this one of them?
failing() {
  value "$1" 0
  ((VALUE > 0)) || return 1
  echo $((VALUE - 1)) >"$FAKE/$1"
}

# folder PATH: it is there then
folder() { [[ -d $1 ]] || mkdir -p "$1"; }

fail() {
  printf '%s: %s\n' "$COMMAND" "$1" >&2
  exit 1
}
