# shellcheck shell=bash
# Log lines: to stderr, and to the file that HyperPod ships to CloudWatch.
[[ -z ${ULTRACLUSTER_LIB_LOG:-} ]] || return 0
ULTRACLUSTER_LIB_LOG=1

# Every path the scripts touch starts with this; empty on a node, a sandbox in tests.
export ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-}

log::debug() { log::line DEBUG "$@"; }
log::info() { log::line INFO "$@"; }
log::warn() { log::line WARN "$@"; }
log::error() { log::line ERROR "$@"; }

log::line() {
  local -r level=$1
  shift
  local TZ=UTC line
  printf -v line '%(%Y-%m-%dT%H:%M:%SZ)T %-5s %s%s' -1 "$level" "${LOG_STEP:+$LOG_STEP: }" "$*"
  log::raw "$line"
}

# The last line of a run that failed, and of one that did not: NAMES of what the node is without, and what it loses with them.
log::failed() { log::last FAILED "$1" "$2"; }
log::degraded() { log::last DEGRADED "$1" "$2"; }
log::ready() { log::raw "READY ${1//$'\n'/ }"; }

log::last() {
  log::raw "$1 $2: ${3//$'\n'/ }"
}

# log::copy [MARK]: stdin, line by line: what commands print belongs in the log, too. Ends with the input, or with MARK at the end
# of a line: what has been left running may hold the other end of the pipe for days.
log::copy() {
  local -r mark=${1:-}
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ -n $mark && $line == *"$mark" ]]; then
      line=${line%"$mark"}
      [[ -z $line ]] || log::raw "$line"
      log::drain
      return 0
    fi
    log::raw "$line"
  done
}

# Whoever still holds the other end must not be killed by what it prints.
log::drain() {
  local line status=0
  IFS= read -r -t 0.01 line || status=$?
  ((status == 1)) || cat <&0 >/dev/null 2>&1 &
}

log::raw() {
  local -r line=$1
  printf '%s\n' "$line" >&2
  # A verb's stderr is a pipe into `log::copy` of the process that writes the file.
  [[ -z ${LOG_PIPED:-} ]] || return 0
  local -r file=${ULTRACLUSTER_LOG:-$ULTRACLUSTER_ROOT/var/log/provision/provisioning.log}
  [[ -d ${file%/*} ]] || mkdir -p "${file%/*}" 2>/dev/null || return 0
  { printf '%s\n' "$line" >>"$file"; } 2>/dev/null || return 0
}
