#!/usr/bin/env bash
# Part of Slurm's epilog: after a job that failed, a look at this node. Never anything but 0: Slurm would drain the node without
# our reason.
set -uo pipefail

readonly HEALTH=${ULTRACLUSTER_ROOT:-}/opt/ultracluster/health
[[ -e $HEALTH/loop/main.py ]] || exit 0
timeout --kill-after=0.5 9 python3 -ISB "$HEALTH/loop/main.py" epilog >/dev/null 2>&1 </dev/null
exit 0
