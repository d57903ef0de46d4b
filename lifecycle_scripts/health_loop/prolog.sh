#!/usr/bin/env bash
# Part of Slurm's prolog: a look at this node before a job, in less than ten seconds whatever a tool does. It ends with 1, which
# sends the job away, only where the loop says so and has drained the node with its own reason. On ParallelCluster all nodes share
# the folder that this lies in.
set -uo pipefail

readonly HEALTH=${ULTRACLUSTER_ROOT:-}/opt/ultracluster/health
[[ -e $HEALTH/loop/main.py ]] || exit 0
timeout --kill-after=0.5 9 python3 -ISB "$HEALTH/loop/main.py" prolog >/dev/null 2>&1 </dev/null
(($? != 75)) || exit 1
exit 0
