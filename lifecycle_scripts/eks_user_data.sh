#!/usr/bin/env bash
# Amazon EKS, AL2023: from user data, before nodeadm joins the node. Arguments: [--group NAME]
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/entry.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/entry.sh"

entry::run eks_user_data "$@"
