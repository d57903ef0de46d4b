#!/usr/bin/env bash
# SageMaker HyperPod, Slurm, `OnCreate`: the service leaves file systems and Slurm daemons to us.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run hyperpod_on_create
