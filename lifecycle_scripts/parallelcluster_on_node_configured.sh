#!/usr/bin/env bash
# AWS ParallelCluster, `OnNodeConfigured`: Slurm and shared storage are there. Arguments: [--group NAME]
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run parallelcluster_on_node_configured "$@"
