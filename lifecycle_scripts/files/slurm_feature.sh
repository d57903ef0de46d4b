#!/usr/bin/env bash
# Tells Slurm whether this node has all of its release: the feature ultracluster_ready or ultracluster_degraded, which jobs ask for
# with `--constraint`. It is added to the features that the node has; those of others stay. Run by its unit, at every boot.
set -euo pipefail

readonly ROOT=${ULTRACLUSTER_ROOT:-}
readonly SECONDS_BETWEEN=${ULTRACLUSTER_FEATURE_PAUSE:-20} ATTEMPTS=${ULTRACLUSTER_FEATURE_ATTEMPTS:-90}
if [[ -z $ROOT ]]; then
  # PCS has one folder per version of Slurm, and links none.
  for folder in /opt/aws/pcs/scheduler/slurm-*/bin /opt/slurm/bin; do
    [[ ! -d $folder ]] || PATH=$folder:$PATH
  done
fi

# field NAME LINE: a value of one line of `scontrol show node`
field() {
  [[ $2 =~ (^|[[:space:]])$1=([^[:space:]]*) ]] || return 0
  [[ ${BASH_REMATCH[2]} == '(null)' ]] || printf '%s' "${BASH_REMATCH[2]}"
}

# The node's own line. Its name in Slurm is its host name, or one that the orchestrator gave it.
own_line() {
  local line address
  scontrol --oneliner show node "$HOST" 2>/dev/null && return 0
  while IFS= read -r line; do
    address=$(field NodeAddr "$line")
    [[ -n $address ]] || continue
    if [[ $(field NodeHostName "$line") == "$HOST" || $address == "$HOST" || " $ADDRESSES" == *" $address "* ]]; then
      printf '%s\n' "$line"
      return 0
    fi
  done < <(scontrol --oneliner show node)
  return 1
}

# with_ours FEATURES
with_ours() {
  local feature features=()
  for feature in ${1//,/ }; do
    [[ $feature == ultracluster_ready || $feature == ultracluster_degraded ]] || features+=("$feature")
  done
  features+=("ultracluster_$STATE")
  local IFS=,
  printf '%s' "${features[*]}"
}

# Slurm makes what is available active, too, unless a plugin for features is at work.
tell() {
  local line name available active
  line=$(own_line) || return 1
  name=$(field NodeName "$line") available=$(field AvailableFeatures "$line")
  [[ -n $name ]] || return 1
  if [[ $(with_ours "$available") != "$available" ]]; then
    scontrol update "NodeName=$name" "AvailableFeatures=$(with_ours "$available")" || return 1
    line=$(own_line) || return 1
  fi
  active=$(field ActiveFeatures "$line")
  [[ ",$active," == *",ultracluster_$STATE,"* ]] || scontrol update "NodeName=$name" "ActiveFeatures=$(with_ours "$active")"
}

STATE=$(<"$ROOT/etc/ultracluster/state")
HOST=$(<"$ROOT/proc/sys/kernel/hostname")
HOST=${HOST%%.*}
ADDRESSES=$(ip -o address show scope global | awk '{ sub("/.*", "", $4); printf "%s ", $4 }')
for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
  if tell; then
    echo "Slurm knows that this node is $STATE"
    exit 0
  fi
  sleep "$SECONDS_BETWEEN"
done
echo "Slurm was not told that this node is $STATE: it does not know the node, or does not answer"
