#!/usr/bin/env bash
# SageMaker HyperPod, Slurm, `OnInitComplete`: the service has set up Slurm and mounted FSx; we add to it.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run hyperpod_on_init_complete
