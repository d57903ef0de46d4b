# shellcheck shell=bash
# What health checks have at hand: who this node is, tools that are ended in time, and a place for what they find. The
# contract is ../health/README.md.
[[ -z ${ULTRACLUSTER_LIB_HEALTH:-} ]] || return 0
ULTRACLUSTER_LIB_HEALTH=1

export ULTRACLUSTER_ROOT=${ULTRACLUSTER_ROOT:-}
# What outlives a boot (counters, cursors), what does not, and who this node is
readonly HEALTH_STATE=$ULTRACLUSTER_ROOT/var/lib/ultracluster/health
# shellcheck disable=SC2034 # run_check.sh reads it
readonly HEALTH_RUN=$ULTRACLUSTER_ROOT/run/ultracluster/health
readonly HEALTH_NODE=$HEALTH_STATE/node
# What checks read of this node
readonly HEALTH_FACTS=(NODE_GROUP NODE_ROLE NODE_INSTANCE_TYPE NODE_FAMILY NODE_ACCELERATOR NODE_ACCELERATORS
  NODE_ACCELERATOR_NAME NODE_EFA_INTERFACES NODE_EFA_LAYOUTS NODE_LOCAL_NVME_DISKS NODE_NVSWITCH NODE_IMEX NODE_MIG
  NODE_LUSTRE_EFA_INTERFACES LUSTRE_PATH LUSTRE_EFA LUSTRE_FURTHER)

# health::remember: the facts that lib/node.sh found are kept for checks: an entry knows the group, which nothing tells later.
health::remember() {
  local key
  mkdir -p "$HEALTH_STATE"
  for key in "${HEALTH_FACTS[@]}"; do printf '%s=%s\n' "$key" "${!key-}"; done >"$HEALTH_NODE.new"
  mv -f -- "$HEALTH_NODE.new" "$HEALTH_NODE"
}

# health::facts: sets the variables of HEALTH_FACTS; empty is unknown, never no.
health::facts() {
  local key value
  for key in "${HEALTH_FACTS[@]}"; do printf -v "$key" '%s' ''; done
  [[ -r $HEALTH_NODE ]] || { health::identify && return; }
  while IFS='=' read -r key value; do
    [[ " ${HEALTH_FACTS[*]} " != *" $key "* ]] || printf -v "$key" '%s' "$value"
  done <"$HEALTH_NODE" || true
}

# Where no entry has left them. The group is then the one that has this type.
health::identify() {
  local library
  for library in log node; do
    # shellcheck source=/dev/null
    source "$ULTRACLUSTER_HOME/lib/$library.sh"
  done
  export ULTRACLUSTER_LOG=/dev/null
  if [[ -e $RESOURCE_CONFIG ]]; then
    ULTRACLUSTER_NODE_DEADLINE=0 node::load || true
  else
    node::load_here '' '' || true
  fi
}

# --- tools ---

# shellcheck disable=SC2034 # what checks read
# health::tool SECONDS COMMAND...: sets TOOL_STATUS (124: it did not end in time; 127: there is no such command) and
# TOOL_TEXT, all that it printed. --foreground leaves it in our process group, which run_check.sh ends as a whole.
health::tool() {
  local -r seconds=$1
  shift
  TOOL_STATUS=0 TOOL_TEXT=''
  if ! command -v "$1" >/dev/null; then
    TOOL_STATUS=127
    return 0
  fi
  # bash leaves zero bytes out, and would say so
  { TOOL_TEXT=$(timeout --foreground --kill-after=0.2 "$seconds" "$@" 2>&1 </dev/null | head -c 1000000); } 2>/dev/null || TOOL_STATUS=$?
  ((TOOL_STATUS != 137)) || TOOL_STATUS=124
}

# health::read VARIABLE FILE: its first line, empty where there is none. Files of the kernel, which do not block.
health::read() {
  local health_line=''
  { IFS= read -r health_line <"$2"; } 2>/dev/null || true
  printf -v "$1" '%s' "$health_line"
}

# --- what a check finds: one line each, of which report.py makes the answer ---

# health::ok DETAIL
health::ok() { health::found ok - - "$1"; }

# health::unknown CODE DETAIL: what could not be read. It is recorded, and the node stays.
health::unknown() { health::found unknown "$1" - "$2"; }

# health::fault CODE DETAIL [GPU]: the row CHECK-CODE of faults.json says how grave it is and what is done.
health::fault() { health::found fault "$1" "${3:--}" "$2"; }

# health::row ROW DETAIL [GPU]: a row of the table by its id
health::row() { health::found row "$1" "${3:--}" "$2"; }

health::found() {
  local detail=${4//[$'\t\n\r']/ }
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${detail:0:400}" >>"$HEALTH_FOUND"
}

# --- numbers between two looks ---

# health::kept VARIABLE CHECK: what the last look of this check kept, empty where there is none. It is of this boot when its
# first line is the boot's id: counters begin again with each boot.
health::kept() {
  local health_text=''
  { IFS= read -r -d '' health_text <"$HEALTH_STATE/$2.state"; } 2>/dev/null || true
  printf -v "$1" '%s' "$health_text"
}

# health::keep CHECK TEXT: for the next look. A user who looks by hand may not write there, which is no fault.
health::keep() {
  local -r file=$HEALTH_STATE/$1.state
  { { [[ -d $HEALTH_STATE ]] || mkdir -p "$HEALTH_STATE"; } && printf '%s' "$2" >"$file.$BASHPID" && mv -f -- "$file.$BASHPID" "$file"; } 2>/dev/null || rm -f -- "$file.$BASHPID" 2>/dev/null || true
}

health::boot() {
  health::read "$1" "$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
}
