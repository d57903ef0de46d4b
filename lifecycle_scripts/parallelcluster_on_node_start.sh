#!/usr/bin/env bash
# AWS ParallelCluster, `OnNodeStart`: before the node is configured. Arguments: [--group NAME]
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run parallelcluster_on_node_start "$@"
