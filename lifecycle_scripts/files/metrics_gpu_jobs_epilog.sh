#!/usr/bin/env bash
# Part of Slurm's epilog: the job has its GPUs no more. It is taken out of every file, as it may have had others than it has now.
# Never anything but 0: Slurm would drain the node.
set -uo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin:${PATH:-}

readonly FOLDER=${ULTRACLUSTER_ROOT:-}/run/ultracluster/gpu-jobs
[[ ${SLURM_JOB_ID:-} =~ ^[0-9]+$ && -d $FOLDER ]] || exit 0
# shellcheck disable=SC2016 # the inner shell expands it
timeout --kill-after=1 5 bash -c '
  umask 022
  exec 9>"$1/.lock" && flock --wait 3 9 || exit
  for file in "$1"/[0-9]*; do
    grep -qxs "$2" "$file" || continue
    grep -vx "$2" "$file" >"$1/.new"
    mv -f "$1/.new" "$file"
  done' - "$FOLDER" "$SLURM_JOB_ID" >/dev/null 2>&1 </dev/null
exit 0
