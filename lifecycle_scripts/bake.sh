#!/usr/bin/env bash
# Brings an image that is being built to a release: no cluster, no role, nothing is started or mounted.
# bake.sh --release YYYY.MM [--accelerator nvidia|neuron|none] [--efa yes|no] [--mirror s3://BUCKET/PREFIX]
#         [--family FAMILY] [--component NAME]... [--verify yes|no]
# What is not given is taken from the machine that builds. The system and the processor always are: packages for another
# cannot be installed here. FAMILY: hyperpod-slurm, hyperpod-eks, eks-al2023, parallelcluster, pcs, dlami or plain; HyperPod's
# images on EKS look like others before a cluster runs them. --verify yes fails if there was still something to install.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

usage() {
  sed -n '3,7s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

NODE_INSTANCE_TYPE=$(image_family::instance_type)
accelerator='' efa='' verify=no BAKE_FAMILY='' CLUSTER_RELEASE='' CLUSTER_MIRROR='' CLUSTER_COMPONENTS=''
while (($# > 0)); do
  (($# > 1)) || usage
  case $1 in
    --release) CLUSTER_RELEASE=$2 ;;
    --accelerator) accelerator=$2 ;;
    --efa) efa=$2 ;;
    --mirror) CLUSTER_MIRROR=$2 ;;
    --family) BAKE_FAMILY=$2 ;;
    --verify) verify=$2 ;;
    --component) CLUSTER_COMPONENTS+=" $2" ;;
    *) usage ;;
  esac
  shift 2
done
[[ -n $CLUSTER_RELEASE ]] || usage
[[ $accelerator =~ ^(nvidia|neuron|none)?$ && $efa =~ ^(yes|no)?$ && $verify =~ ^(yes|no)$ ]] || usage
[[ $BAKE_FAMILY =~ ^(hyperpod-slurm|hyperpod-eks|eks-al2023|parallelcluster|pcs|dlami|plain)?$ ]] || usage

NODE_ACCELERATORS=$(($(devices::on_bus nvidia) + $(devices::on_bus neuron)))
NODE_ACCELERATOR=${accelerator:-$(image_family::accelerator)}
NODE_EFA_INTERFACES=$(devices::on_bus efa)
case $efa in
  yes) NODE_EFA_INTERFACES=1 ;;
  no) NODE_EFA_INTERFACES=0 ;;
esac
export NODE_GROUP='' NODE_ROLE=compute NODE_ADDRESS='' NODE_BAKE=yes NODE_LOCAL_NVME_DISKS=0 CLUSTER_NAME='' CLUSTER_ENVIRONMENT=''
export CLUSTER_CONTROLLERS='' NODE_INSTANCE_TYPE NODE_ACCELERATORS NODE_ACCELERATOR NODE_EFA_INTERFACES
export CLUSTER_RELEASE CLUSTER_MIRROR CLUSTER_COMPONENTS

export ULTRACLUSTER_CONSOLE=${ULTRACLUSTER_CONSOLE:-all} # nobody can look at the node later
report=${ULTRACLUSTER_REPORT:-$ULTRACLUSTER_ROOT/var/log/ultracluster/report.jsonl}
before=$({ cat "$report" 2>/dev/null || true; } | wc -l)
case ${BAKE_FAMILY:-$(image_family::detect)} in
  hyperpod-eks | eks-al2023) entry::run bake_kubernetes ;;
  *) entry::run bake ;;
esac
if [[ $verify == yes ]]; then
  installed=$(tail -n "+$((before + 1))" "$report" | sed -n 's/.*"step": "\([a-z_]*\)", "state": "installed".*/\1/p' | tr '\n' ' ')
  # shellcheck disable=SC2034 # entry::fail reads it
  ENTRY_STAGE=verify
  [[ -z $installed ]] || entry::fail "the image lacked what it was made for, installed just now: ${installed% }"
fi
