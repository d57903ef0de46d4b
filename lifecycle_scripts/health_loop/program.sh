#!/usr/bin/env bash
# Slurm's HealthCheckProgram. slurmd ends it after 60 s, gives it no more than SLURMD_NODENAME and PATH, and ignores its status;
# some releases wait for a 0 before a node may register, so it is never anything else.
set -uo pipefail

timeout --kill-after=1 50 python3 -ISB "${ULTRACLUSTER_ROOT:-}/opt/ultracluster/health/loop/main.py" program >/dev/null 2>&1 </dev/null
exit 0
