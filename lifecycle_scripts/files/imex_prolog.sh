#!/usr/bin/env bash
# Slurm prolog on parts of an NVIDIA UltraServer: the nodes of the job become one IMEX domain, so that their GPUs reach
# each other's memory over NVLink. It runs as root on every node of the job before the job does.
#
# NVIDIA IMEX knows its peers by a file that is the same on all of them, and reads it when it starts; AWS leaves it to the
# prolog (ParallelCluster User Guide, "Support NVIDIA-Imex"; NVIDIA IMEX Service User Guide). Only
# exclusive jobs get a domain: a restart under another job on the same node would end that job's.
set -euo pipefail

readonly ROOT=${ULTRACLUSTER_ROOT:-}
readonly PEERS=$ROOT${ULTRACLUSTER_IMEX_PEERS:-/etc/nvidia-imex/nodes_config.cfg}
readonly CONFIG=$ROOT${ULTRACLUSTER_IMEX_CONFIG:-/etc/nvidia-imex/config.cfg}
readonly CHANNEL=$ROOT${ULTRACLUSTER_IMEX_CHANNEL:-/dev/nvidia-caps-imex-channels/channel0}
readonly LOG=$ROOT${ULTRACLUSTER_IMEX_LOG:-/var/log/ultracluster/imex-prolog.log}
readonly SECONDS_TO_READY=${ULTRACLUSTER_IMEX_SECONDS:-60}
# Slurm gives a prolog hardly a PATH. Its own commands: on ParallelCluster and HyperPod, and on PCS.
[[ -n $ROOT ]] || PATH=$(printf '%s:' /opt/slurm/bin /opt/aws/pcs/scheduler/slurm-*/bin)/usr/sbin:/usr/bin:/sbin:/bin
export PATH

say() {
  mkdir -p "${LOG%/*}"
  TZ=UTC0 printf '%(%FT%TZ)T job %s: %s\n' -1 "${SLURM_JOB_ID:-none}" "$1" >>"$LOG"
}

# The node is drained with this status, and the job is queued again.
fail() {
  say "FAILED: $1"
  echo "IMEX: $1" >&2
  exit 1
}

# Its GPUs are in an NVLink cluster of several instances; elsewhere the driver shows only zeros, or N/A (NVML,
# nvmlGpuFabricInfo_t; NVIDIA/topograph finds the members of a domain the same way).
is_ultraserver() {
  local cluster
  command -v nvidia-imex >/dev/null && command -v nvidia-smi >/dev/null || return 1
  cluster=$({ timeout 30 nvidia-smi -q -i 0 2>/dev/null || true; } | sed -n '/ClusterUUID/{s/^[^:]*: *//;s/ *$//;p;q;}')
  [[ $cluster =~ ^[0-9a-fA-F-]{32,36}$ && $cluster == *[!0-]* ]]
}

# field NAME: of what Slurm says about the job
field() {
  sed -n "s/.*[[:space:]]$1=\([^[:space:]]*\).*/\1/p" <<<" $JOB"
}

# addresses LIST: of the nodes in Slurm's list, in an order that is the same everywhere
addresses() {
  local node address name
  while read -r node; do
    name=$(sed -n 's/.*NodeName=\([^[:space:]]*\).*/\1/p' <<<"$node")
    address=$(sed -n 's/.*NodeAddr=\([^[:space:]]*\).*/\1/p' <<<"$node")
    if [[ ! $address =~ ^[0-9.]+$ ]]; then
      address=$(getent ahostsv4 "$address" | sed -n '1s/[[:space:]].*//p') || true
    fi
    [[ -n $address ]] || { say "no address of $name" && return 1; }
    echo "$address"
  done < <(scontrol --oneliner show node "$1") | sort -u
}

make_channel() {
  local major
  [[ ! -c $CHANNEL ]] || return 0
  major=$(sed -n 's/^ *\([0-9]*\) nvidia-caps-imex-channels$/\1/p' "$ROOT/proc/devices")
  [[ -n $major ]] || fail "the driver offers no IMEX channels (/proc/devices)"
  mkdir -p "${CHANNEL%/*}"
  mknod --mode=0666 "$CHANNEL" c "$major" 0 || fail "cannot make ${CHANNEL#"$ROOT"}"
}

ready() {
  [[ $(nvidia-imex-ctl -q -c "$CONFIG" 2>/dev/null) == READY ]]
}

is_ultraserver || exit 0
JOB=$(scontrol --oneliner show job "${SLURM_JOB_ID:?run by Slurm only}") || fail "Slurm does not know its own job"
# What exclusive jobs, and all jobs of an exclusive partition, show; TOPO is --exclusive=topo.
if [[ ! $(field OverSubscribe) =~ ^(NO|EXCLUSIVE|TOPO)$ ]]; then
  say "not exclusive: no IMEX domain"
  exit 0
fi
nodes=${SLURM_JOB_NODELIST:-$(field NodeList)}
wanted=$(addresses "$nodes") || fail "the nodes $nodes have no addresses"
[[ -n $wanted ]] || fail "the nodes $nodes are unknown to Slurm"
make_channel

if [[ -e $PEERS && $(<"$PEERS") == "$wanted" ]] && ready; then
  say "the domain of $nodes is up already"
  exit 0
fi
mkdir -p "${PEERS%/*}"
printf '%s\n' "$wanted" >"$PEERS.new"
mv -f -- "$PEERS.new" "$PEERS"
# A daemon that waits for peers whose own prolog is still to come may be slow to stop.
timeout "$SECONDS_TO_READY" systemctl restart nvidia-imex.service || fail "nvidia-imex.service does not start"
for ((left = SECONDS_TO_READY; left > 0; left--)); do
  if ready; then
    say "the domain of $nodes is up"
    exit 0
  fi
  sleep 1
done
fail "the domain of $nodes was not ready after $SECONDS_TO_READY s"
