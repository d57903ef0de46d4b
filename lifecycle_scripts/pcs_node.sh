#!/usr/bin/env bash
# AWS PCS, lifecycle stage `NodeBootstrapped`: after PCS configured the node, before slurmd. Arguments: [--group NAME]
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run pcs_node "$@"
