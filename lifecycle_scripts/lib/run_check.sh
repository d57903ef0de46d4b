#!/usr/bin/env bash
# run_check.sh CHECK VERB [SECONDS]: one verb of one health check, within its time (2 s for `quick`, 1,800 for `idle`). Prints
# one line of JSON and ends with its status (../health/README.md); prints nothing and ends with 0 where the check is not for this
# node or has no such verb. Whatever a tool does, this ends: a process that the kernel does not let go of is left behind, and
# not started a second time.
set -uo pipefail
shopt -s extglob
umask 022
export LC_ALL=C

ULTRACLUSTER_HOME=${ULTRACLUSTER_HOME:-$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)}
export ULTRACLUSTER_HOME
for library in health json clock; do
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/lib/$library.sh"
done
# A service's PATH may lack these; a test's PATH is its own.
[[ -n $ULTRACLUSTER_ROOT ]] || export PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin

readonly RUN_CHECK_REPORT=$ULTRACLUSTER_HOME/health/report.py

run_check::main() {
  if (($# < 2)) || [[ ! $1 =~ ^[a-z][a-z0-9_]*$ || ! $2 =~ ^(quick|idle)$ || ! -e $ULTRACLUSTER_HOME/health/$1.sh ]]; then
    echo "usage: run_check.sh CHECK quick|idle [SECONDS], with a CHECK of $ULTRACLUSTER_HOME/health" >&2
    return 3
  fi
  CHECK=$1 VERB=$2
  local seconds=2 line='' status='' child='' reader
  [[ $VERB == quick ]] || seconds=1800
  seconds=${3:-$seconds}
  run_check::dead_ms
  run_check::folder || return
  run_check::still_hangs && return "$RUN_CHECK_STATUS"
  exec {reader}< <(run_check::start "$WORK")
  IFS= read -r -t 5 -u "$reader" child || true
  if IFS= read -r -t "$seconds" -u "$reader" status; then
    [[ ! -e $HEALTH_RUN/$CHECK.late && ! -e $HEALTH_RUN/$CHECK.hung ]] || rm -f -- "$HEALTH_RUN/$CHECK".{late,hung} 2>/dev/null
    { IFS= read -r line <"$WORK/out"; } 2>/dev/null || true
    if [[ $status == [0-3] && $line == '{'* ]]; then
      printf '%s\n' "$line"
      [[ ! -e $WORK/next ]] || health::keep "$CHECK" "$(<"$WORK/next")"
    elif [[ $status == 0 && -z $line ]]; then
      : # not for this node
    else
      run_check::say unknown broken "the check itself is broken (status $status): $(run_check::last_words)"
    fi
  else
    [[ ! $child =~ ^[0-9]+$ ]] || kill -KILL -- "-$child" 2>/dev/null
    run_check::late "$child" "$seconds"
  fi
  exec {reader}<&-
  rm -rf -- "$WORK"
  [[ $status == [0-3] && -z ${RUN_CHECK_STATUS:-} ]] || status=${RUN_CHECK_STATUS:-3}
  return "$status"
}

# A folder for this look: below /run, or for a user who looks by hand below /tmp
run_check::folder() {
  WORK=$HEALTH_RUN/$CHECK.$$
  { { [[ -d $HEALTH_RUN ]] || mkdir -p "$HEALTH_RUN"; } && mkdir -m 700 "$WORK"; } 2>/dev/null && return
  WORK=${TMPDIR:-/tmp}/ultracluster-$CHECK-$UID.$$
  mkdir -m 700 "$WORK" 2>/dev/null && return
  run_check::say unknown folder "no place for a look: neither $HEALTH_RUN nor ${TMPDIR:-/tmp} can be written"
  return 3
}

# So long nothing answered, before that itself is a fault (rows CHECK-hung of the table). A file system that is given another
# throughput or more metadata servers stands still for minutes, on all nodes, and comes back by itself.
run_check::dead_ms() {
  local seconds=60
  [[ $CHECK != lustre ]] || seconds=300
  RUN_CHECK_DEAD_MS=$((${ULTRACLUSTER_HEALTH_DEAD_SECONDS:-$seconds} * 1000))
}

# run_check::start FOLDER: the process group of the look, then its status. None of its output goes to a pipe that a caller
# waits for.
run_check::start() {
  local status
  set -m
  HEALTH_FOUND=$1/found HEALTH_NEXT=$1/next run_check::inside "$CHECK" "$VERB" >"$1/out" 2>"$1/err" </dev/null &
  echo "$!"
  wait "$!" 2>/dev/null
  status=$?
  # what the look started and did not wait for ends with it
  kill -KILL -- "-$!"
  echo "$status"
} 2>/dev/null

run_check::last_words() {
  local words
  words=$(tail -n 1 "$WORK/err" 2>/dev/null)
  printf '%s' "${words:-it says nothing}"
}

# run_check::say RESULT CODE DETAIL: without the table, and sets RUN_CHECK_STATUS
run_check::say() {
  local detail
  json::text detail "${3:0:400}"
  printf '{"check": "%s", "verb": "%s", "result": "%s", "code": "%s", "detail": %s}\n' "$CHECK" "$VERB" "$1" "$2" "$detail"
  RUN_CHECK_STATUS=3
}

# run_check::late CHILD SECONDS: it did not end in time. A tool that is slow once is no fault. What has not answered for a
# minute (`dead_ms`) is one where the table has it: for a file system that is what the check is about, elsewhere only for a process that the kernel
# itself does not end.
run_check::late() {
  local now since=''
  clock::now now
  run_check::left_behind "$1" "$now" && return
  health::read since "$HEALTH_RUN/$CHECK.late"
  [[ $since =~ ^[0-9]+$ ]] || { since=$now && { echo "$now" >"$HEALTH_RUN/$CHECK.late"; } 2>/dev/null; }
  if ((now - since >= RUN_CHECK_DEAD_MS)); then
    run_check::fault silent "no answer within $2 s, and none for $(((now - since) / 1000)) s" && return
  fi
  run_check::say unknown late "no answer within $2 s"
}

# run_check::left_behind GROUP NOW: is one of its processes still there after SIGKILL, and no zombie? Kept with its start.
run_check::left_behind() {
  local stat text pid tries rest
  for ((tries = 0; tries < 4; tries++)); do
    read -r -t 0.05 <> <(:) || true
    pid=''
    for stat in /proc/[0-9]*/stat; do
      { IFS= read -r text <"$stat"; } 2>/dev/null || continue
      # 4711 (nvidia-smi) D 1 4700 ...: a name may hold blanks and brackets. Behind it: state, parent, group, ..., start as the 20th
      read -ra rest <<<"${text##*) }"
      [[ ${rest[2]} == "$1" && ${rest[0]} != [ZX] ]] || continue
      pid=${text%% *}
      break
    done
    [[ -n $pid ]] || return 1
  done
  { echo "$pid ${rest[19]} $2" >"$HEALTH_RUN/$CHECK.hung"; } 2>/dev/null
  run_check::say unknown hung "process $pid does not answer, and the kernel does not end it"
}

# What an earlier look left behind and is still there: no second one beside it.
run_check::still_hangs() {
  local pid started since text now rest
  { read -r pid started since <"$HEALTH_RUN/$CHECK.hung"; } 2>/dev/null || return 1
  [[ $pid =~ ^[0-9]+$ && $since =~ ^[0-9]+$ ]] || return 1
  { IFS= read -r text <"/proc/$pid/stat"; } 2>/dev/null || return 1
  read -ra rest <<<"${text##*) }"
  [[ ${rest[0]} != [ZX] && ${rest[19]} == "$started" ]] || return 1
  clock::now now
  if ((now - since < RUN_CHECK_DEAD_MS)) || ! run_check::fault hung "process $pid has hung for $(((now - since) / 1000)) s, and the kernel does not end it"; then
    run_check::say unknown hung "process $pid of an earlier look still hangs"
  fi
  rm -rf -- "$WORK"
}

# run_check::fault CODE DETAIL: by the table; status 1 where it has no such row
run_check::fault() {
  local line
  printf 'fault\t%s\t-\t%s\n' "$1" "$2" >"$WORK/found"
  line=$(health::facts 2>/dev/null && ACCELERATOR=${NODE_ACCELERATOR_NAME:-} timeout 5 python3 -ISB "$RUN_CHECK_REPORT" "$CHECK" "$VERB" "$WORK/found" 2>/dev/null)
  RUN_CHECK_STATUS=$?
  [[ $RUN_CHECK_STATUS == [0-2] && $line == '{'* ]] && printf '%s\n' "$line" && return
  RUN_CHECK_STATUS=
  return 1
}

# The look itself, in a process group of its own that what it starts belongs to, too
run_check::inside() {
  set +m -Eeuo pipefail
  local -r check=$1 verb=$2
  # shellcheck source=/dev/null
  source "$ULTRACLUSTER_HOME/health/$check.sh"
  declare -F "$check::$verb" >/dev/null || return 0
  health::facts
  "$check::applies" >&2 || return 0
  : >"$HEALTH_FOUND"
  # standard output is for the one line
  "$check::$verb" >&2
  ! run_check::is_plain || return "$RUN_CHECK_PLAIN"
  ACCELERATOR=${NODE_ACCELERATOR_NAME:-} exec python3 -ISB "$RUN_CHECK_REPORT" "$check" "$verb" "$HEALTH_FOUND"
}

# Where the table has no part in what a check has found (all is well, or something could not be read), its line is written here, as
# report.py writes it: a Python for each check of each round would take longer than the checks themselves. Sets RUN_CHECK_PLAIN to
# the status of the look. Status 1 where there is more to say.
run_check::is_plain() {
  local -A seen=()
  local kind code gpu detail result=ok first=ok text=''
  RUN_CHECK_PLAIN=0
  while IFS=$'\t' read -r kind code gpu detail; do
    [[ $gpu == - && -n $detail && $detail != *[![:print:]]* ]] || return 1
    case $result:$kind:$code in
      ok:ok:-) ;;
      unknown:ok:-) continue ;;
      ok:unknown:+([a-z_])) result=unknown first=$code RUN_CHECK_PLAIN=3 text=$detail && continue ;;
      unknown:unknown:+([a-z_])) detail="$code: $detail" ;;
      *) return 1 ;;
    esac
    [[ -n ${seen["$result $detail"]:-} ]] || text+="${text:+; }$detail"
    seen["$result $detail"]=yes
  done <"$HEALTH_FOUND"
  [[ -n $text ]] && ((${#text} <= 1000)) || return 1
  json::text text "$text"
  printf '{"check": "%s", "verb": "%s", "result": "%s", "code": "%s", "detail": %s}\n' "$check" "$verb" "$result" "$first" "$text"
}

run_check::main "$@"
