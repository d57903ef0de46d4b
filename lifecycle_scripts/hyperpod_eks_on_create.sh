#!/usr/bin/env bash
# SageMaker HyperPod, EKS, `OnCreate`: the only script of such a node.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run hyperpod_eks_on_create
