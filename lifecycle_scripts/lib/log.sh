# shellcheck shell=bash
# Log lines. All of them go to LOG_ALL; the few that an operator reads also to stderr (the console) and to the file that HyperPod ships
# to CloudWatch: warnings, errors, what log::announce says, and the last lines, which name the other file. ULTRACLUSTER_CONSOLE=all: all do.
[[ -z ${ULTRACLUSTER_LIB_LOG:-} ]] || return 0
ULTRACLUSTER_LIB_LOG=1

# Every path the scripts touch starts with this; empty on a node, a sandbox in tests.
export ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-}

readonly LOG_ALL=$ULTRACLUSTER_ROOT/var/log/ultracluster/run.log

log::debug() { log::line DEBUG "$@"; }
log::info() { log::line INFO "$@"; }
log::warn() { log::line WARN "$@"; }
log::error() { log::line ERROR "$@"; }

log::line() {
  local -r level=$1
  shift
  local TZ=UTC line
  printf -v line '%(%Y-%m-%dT%H:%M:%SZ)T %-5s %s%s' -1 "$level" "${LOG_STEP:+$LOG_STEP: }" "$*"
  case $level in
    WARN | ERROR) log::raw "$line" ;;
    *) log::quiet "$line" ;;
  esac
}

# log::announce TEXT: for whoever watches the boot
# shellcheck disable=SC2329 # other libraries call it
log::announce() {
  local TZ=UTC line
  printf -v line '%(%Y-%m-%dT%H:%M:%SZ)T INFO  %s' -1 "$*"
  log::raw "$line"
}

# The last line of a run that failed, and of one that did not: NAMES of what the node is without, and what it loses with them.
log::failed() {
  log::context 30 # the node may end before anybody can look at it
  log::last FAILED "$1" "$2"
}
log::degraded() { log::last DEGRADED "$1" "$2"; }
log::ready() {
  log::name_all
  log::raw "READY ${1//$'\n'/ }"
}

log::last() {
  log::name_all
  log::raw "$1 $2: ${3//$'\n'/ }"
}

# log::context COUNT: the last lines of LOG_ALL, on the console: what led to a failure
log::context() {
  local line
  ! log::is_verbose && [[ -r $LOG_ALL ]] || return 0
  while IFS= read -r line; do log::announce "  | $line"; done < <(tail -n "$1" "$LOG_ALL")
}

log::name_all() { log::announce "all lines of this run: $LOG_ALL"; }

log::is_verbose() { [[ ${ULTRACLUSTER_CONSOLE:-} == all ]]; }

# log::copy [MARK]: stdin, line by line: what commands print belongs in the log, too. Ends with the input, or with MARK at the end
# of a line: what has been left running may hold the other end of the pipe for days.
log::copy() {
  local -r mark=${1:-}
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ -n $mark && $line == *"$mark" ]]; then
      line=${line%"$mark"}
      [[ -z $line ]] || log::sort "$line"
      log::drain
      return 0
    fi
    log::sort "$line"
  done
}

# log::sort LINE: of a verb
log::sort() {
  if [[ $1 =~ ^[0-9T:-]+Z\ (WARN|ERROR)\  ]]; then log::raw "$1"; else log::quiet "$1"; fi
}

# Whoever still holds the other end must not be killed by what it prints.
log::drain() {
  local line status=0
  IFS= read -r -t 0.01 line || status=$?
  ((status == 1)) || { cat <&0 >/dev/null 2>&1 & }
}

# log::raw LINE: to everybody
log::raw() {
  # A verb's stderr is a pipe into `log::copy` of the process that writes the files.
  [[ -n ${LOG_PIPED:-} ]] || log::append "$LOG_ALL" "$1" || true
  log::show "$1"
}

# log::quiet LINE: to LOG_ALL only, or where that cannot be written to the console
log::quiet() {
  if [[ -n ${LOG_PIPED:-} ]] || ! log::append "$LOG_ALL" "$1" || log::is_verbose; then log::show "$1"; fi
}

# log::show LINE: to the console and the shipped file
log::show() {
  local -r line=$1
  printf '%s\n' "$line" >&2
  [[ -n ${LOG_PIPED:-} ]] || log::append "${ULTRACLUSTER_LOG:-$ULTRACLUSTER_ROOT/var/log/provision/provisioning.log}" "$line" || true
}

# log::append FILE LINE
log::append() {
  [[ ${ULTRACLUSTER_LOG:-} != /dev/null ]] || return 0
  [[ -d ${1%/*} ]] || mkdir -p "${1%/*}" 2>/dev/null || return 1
  { printf '%s\n' "$2" >>"$1"; } 2>/dev/null
}
