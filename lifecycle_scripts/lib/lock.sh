# shellcheck shell=bash
# Locks that the kernel releases when their holder dies: nothing is left behind by a kill.
[[ -z ${ULTRACLUSTER_LIB_LOCK:-} ]] || return 0
ULTRACLUSTER_LIB_LOCK=1

# shellcheck source-path=SCRIPTDIR source=log.sh
source "${BASH_SOURCE[0]%/*}/log.sh"

# lock::hold NAME DEADLINE_SECONDS: holds the lock until this process and its children have ended, but for those that close
# LOCK_DESCRIPTOR. Not in /run/lock: everybody may write there, and hold it for ever.
lock::hold() {
  local -r name=$1 deadline=$2
  local -r file=$ULTRACLUSTER_ROOT/run/ultracluster/$name.lock
  local descriptor
  [[ -d ${file%/*} ]] || mkdir -p "${file%/*}"
  # Root's to read, too: whoever may open it may lock it.
  [[ -e $file ]] || (umask 077 && : >>"$file")
  exec {descriptor}>>"$file"
  # shellcheck disable=SC2034 # the caller's
  LOCK_DESCRIPTOR=$descriptor
  flock --exclusive --nonblock "$descriptor" && return 0
  log::info "waiting up to $deadline s for the lock '$name'"
  flock --exclusive --timeout "$deadline" "$descriptor" && return 0
  exec {descriptor}>&-
  return 1
}

# lock::let_go: this process does not hold the lock of the run (ULTRACLUSTER_LOCK, see entry.sh), nor does what it starts.
lock::let_go() {
  [[ -z ${ULTRACLUSTER_LOCK:-} ]] || exec {ULTRACLUSTER_LOCK}>&-
  unset ULTRACLUSTER_LOCK
}
