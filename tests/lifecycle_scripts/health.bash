# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what tests read, and what `run` sets
# What tests of health checks have beyond helpers.bash: a node that has booted, and one look of one check.

REAL_COMMANDS+=(setsid)

# A p5.48xlarge in order, with the facts that its boot left; built once for all tests of a file.
node::template() { TEMPLATE=$BATS_FILE_TMPDIR/healthy; }

scenario() {
  local -r healthy=$BATS_FILE_TMPDIR/healthy
  [[ $TEMPLATE != "$healthy" ]] || return 0
  healthy_node
  mkdir "$healthy"
  cp -a "$ULTRACLUSTER_ROOT" "$FAKE" "$SANDBOX/bin" "$healthy"
}

healthy_node() {
  mkdir -p "$FAKE/gpus" "$ULTRACLUSTER_ROOT"/{run,var/lib}/ultracluster/health "$ULTRACLUSTER_ROOT/proc/sys/kernel/random"
  echo 01234567-89ab-cdef-0123-456789abcdef >"$ULTRACLUSTER_ROOT/proc/sys/kernel/random/boot_id"
  facts NODE_GROUP=gpu NODE_ROLE=compute NODE_INSTANCE_TYPE=p5.48xlarge NODE_FAMILY=hyperpod-slurm NODE_ACCELERATOR=nvidia \
    NODE_ACCELERATORS=8 NODE_ACCELERATOR_NAME=H100 NODE_EFA_INTERFACES=32 NODE_LOCAL_NVME_DISKS=8 NODE_NVSWITCH=yes NODE_IMEX=no \
    NODE_LUSTRE_EFA_INTERFACES=8 LUSTRE_PATH=/fsx
  if declare -F healthy >/dev/null; then healthy; fi
}

# facts KEY=VALUE...: in place of those that are there
facts() {
  local -r file=$ULTRACLUSTER_ROOT/var/lib/ultracluster/health/node
  local fact line lines=()
  [[ ! -e $file ]] || mapfile -t lines <"$file"
  for fact in "$@"; do
    for line in "${!lines[@]}"; do [[ ${lines[line]} != "${fact%%=*}="* ]] || unset "lines[line]"; done
    lines+=("$fact")
  done
  printf '%s\n' "${lines[@]}" >"$file"
}

# apart COMMAND...: its standard error goes to a file, for which `run --separate-stderr` takes several processes.
apart() { "$@" 2>"$SANDBOX/stderr"; }

# look CHECK [VERB]: runs it; LINE is what it printed, `status` how it ended.
look() {
  local -r answer=$ULTRACLUSTER_ROOT/run/ultracluster/health/nvidia-smi
  # what one look asked is not good for the next one of a test
  [[ ! -e $answer ]] || rm -f "$answer"
  run apart on_node ULTRACLUSTER_HEALTH_TOOL_SECONDS="${TOOL_SECONDS:-60}" ${DEAD_SECONDS:+ULTRACLUSTER_HEALTH_DEAD_SECONDS="$DEAD_SECONDS"} \
    "$SCRIPTS/lib/run_check.sh" "$1" "${2:-quick}" "${LOOK_SECONDS:-300}"
  LINE=$output
  [[ ${#lines[@]} -le 1 ]] || { printf 'more than a line:\n%s\n' "$output" && return 1; }
}

# A text of JSON, and the line that a look has to print
readonly TEXT='"([^"\]|\\.)*"'
readonly ANSWER="^\{\"check\": $TEXT, \"verb\": $TEXT, \"result\": \"([a-z]+)\", \"code\": \"([^\"\\]+)\", \"detail\": ($TEXT)(, \"[a-z_]+\": ($TEXT|true|[0-9.]+|\[.*\]))*\}$"

# finds RESULT CODE CHECK [VERB] [PART]: a look comes to this, with this in its detail
finds() {
  local detail expected=3
  look "$3" "${4:-quick}"
  [[ $LINE =~ $ANSWER ]] || { printf 'no answer:\n%s\n%s\n' "$LINE" "$(<"$SANDBOX/stderr")" && return 1; }
  [[ ${BASH_REMATCH[3]} == "$1" && ${BASH_REMATCH[4]} == "$2" ]] || { printf 'expected: %s %s\nfound:    %s\n%s\n' "$1" "$2" "$LINE" "$(<"$SANDBOX/stderr")" && return 1; }
  detail=${BASH_REMATCH[5]//'\"'/\"}
  printf -v detail '%b' "$detail"
  case $1 in ok) expected=0 ;; warn) expected=1 ;; critical) expected=2 ;; esac
  assert::equal "$expected" "$status"
  [[ -z ${5:-} ]] || assert::contains "$detail" "$5"
}

# says KEY VALUE: in the line of the last look
says() {
  local -r member="\"$1\": \"(([^\"\\]|\\\\.)*)\""
  local value=''
  [[ ! $LINE =~ $member ]] || value=${BASH_REMATCH[1]}
  assert::equal "$2" "$value"
}

# is_not_for_this_node CHECK [VERB]
is_not_for_this_node() {
  look "$@"
  assert::status 0
  assert::equal '' "$LINE"
}

# prints COMMAND TEXT [STATUS]: the command prints this, whatever it is asked
prints() {
  is_absent "$1"
  # shellcheck disable=SC2016 # of that script
  printf '#!/bin/bash\nprintf "%%s\\n" "$(<"$0.text")"\nexit %s\n' "${3:-0}" >"$SANDBOX/bin/$1"
  printf '%s' "$2" >"$SANDBOX/bin/$1.text"
  chmod 755 "$SANDBOX/bin/$1"
}

# hangs COMMAND: it does not answer, and tools have a second to do so.
hangs() {
  TOOL_SECONDS=1
  rm -f "$SANDBOX/bin/$1"
  printf '#!/bin/bash\nexec sleep 600\n' >"$SANDBOX/bin/$1"
  chmod 755 "$SANDBOX/bin/$1"
}

is_absent() {
  unset TOOL_SECONDS
  rm -f "$SANDBOX/bin/$1" "$SANDBOX/bin/$1.text"
}

# gpu INDEX FIELD VALUE: what nvidia-smi shows of it
gpu() {
  mkdir -p "$FAKE/gpus/$1"
  echo "$3" >"$FAKE/gpus/$1/$2"
}

# Garbage that tools have been seen to print, and worse
# shellcheck disable=SC2016 # nothing is to be expanded
garbage() {
  printf '%s\n' '' '{' 'N/A' '0, 0' '<?xml version="1.0"?>' '[Unknown Error]' '%s%n$(reboot)`id`' '*' '9999999999999999999999' '-1, -1, -1' 'é ü 日本'
}

# Every third of it, from another one on in each test; with DEPTH=deep all. A look for each costs a second per check.
some_garbage() {
  local texts at
  mapfile -t texts < <(garbage)
  for at in "${!texts[@]}"; do
    [[ ${DEPTH:-} != deep && $(((at + BATS_TEST_NUMBER) % 3)) != 0 ]] || printf '%s\n' "${texts[at]}"
  done
}
