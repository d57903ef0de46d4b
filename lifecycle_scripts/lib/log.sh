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

# The last line of a run that failed.
log::failed() {
  local -r step=$1 reason=$2
  log::raw "FAILED $step: ${reason//$'\n'/ }"
}

# stdin, line by line: what commands print belongs in the log, too.
log::copy() {
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    log::raw "$line"
  done
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
