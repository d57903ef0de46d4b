#!/usr/bin/env bash
# Brings an image that is being built to a release: no cluster, no role, nothing is started or mounted.
# bake.sh --release YYYY.MM [--accelerator nvidia|neuron|none] [--efa yes|no] [--mirror s3://BUCKET/PREFIX]
#         [--component NAME]...
# What is not given is taken from the machine that builds. The system and the processor always are: packages for another
# cannot be installed here.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

usage() {
  sed -n '3,6s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

NODE_INSTANCE_TYPE=$(image_family::instance_type)
accelerator='' efa='' CLUSTER_RELEASE='' CLUSTER_MIRROR='' CLUSTER_COMPONENTS=''
while (($# > 0)); do
  (($# > 1)) || usage
  case $1 in
    --release) CLUSTER_RELEASE=$2 ;;
    --accelerator) accelerator=$2 ;;
    --efa) efa=$2 ;;
    --mirror) CLUSTER_MIRROR=$2 ;;
    --component) CLUSTER_COMPONENTS+=" $2" ;;
    *) usage ;;
  esac
  shift 2
done
[[ -n $CLUSTER_RELEASE ]] || usage
[[ $accelerator =~ ^(nvidia|neuron|none)?$ && $efa =~ ^(yes|no)?$ ]] || usage

NODE_ACCELERATORS=$(($(image_family::devices nvidia) + $(image_family::devices neuron)))
NODE_ACCELERATOR=${accelerator:-$(image_family::accelerator "$NODE_INSTANCE_TYPE" "$NODE_ACCELERATORS")}
NODE_EFA_INTERFACES=$(image_family::devices efa)
case $efa in
  yes) NODE_EFA_INTERFACES=1 ;;
  no) NODE_EFA_INTERFACES=0 ;;
esac
export NODE_GROUP='' NODE_ROLE=compute NODE_ADDRESS='' NODE_BAKE=yes NODE_LOCAL_NVME_DISKS=0 CLUSTER_NAME='' CLUSTER_ENVIRONMENT=''
export CLUSTER_CONTROLLERS='' NODE_INSTANCE_TYPE NODE_ACCELERATORS NODE_ACCELERATOR NODE_EFA_INTERFACES
export CLUSTER_RELEASE CLUSTER_MIRROR CLUSTER_COMPONENTS
entry::run bake
