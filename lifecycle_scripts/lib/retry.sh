# shellcheck shell=bash
# Repeats what is transient: exponential back-off with jitter, up to a deadline.
[[ -z ${ULTRACLUSTER_LIB_RETRY:-} ]] || return 0
ULTRACLUSTER_LIB_RETRY=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"
# shellcheck source-path=SCRIPTDIR source=clock.sh
source "${BASH_SOURCE[0]%/*}/clock.sh"

# A command that ends with this status (EX_CONFIG) says that another attempt would be no better.
readonly RETRY_GIVE_UP=78

# retry::run DEADLINE_SECONDS COMMAND [ARGUMENT...]
# The command runs in this shell, so a function may set variables. It is not interrupted at the deadline:
# what can hang is called through `timeout`.
retry::run() {
  local deadline pause longest now end wait seconds status attempt=1
  clock::to_ms deadline "$1"
  shift
  clock::to_ms pause "${ULTRACLUSTER_RETRY_PAUSE:-1}"
  clock::to_ms longest "${ULTRACLUSTER_RETRY_LONGEST_PAUSE:-30}"
  clock::now now
  end=$((now + deadline))
  while true; do
    status=0
    "$@" || status=$?
    ((status != 0)) || return 0
    ((status != RETRY_GIVE_UP)) || return "$status"
    clock::now now
    ((now < end)) || return "$status"
    # Half of the pause is random: hundreds of nodes must not come back in step.
    wait=$((pause / 2 + RANDOM % (pause / 2 + 1)))
    ((now + wait <= end)) || wait=$((end - now))
    clock::to_seconds seconds "$wait"
    log::warn "attempt $attempt ended with status $status, again in ${seconds} s: $*"
    sleep "$seconds"
    pause=$((pause * 2 < longest ? pause * 2 : longest))
    attempt=$((attempt + 1))
  done
}
