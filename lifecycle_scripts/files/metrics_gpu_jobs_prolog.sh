#!/usr/bin/env bash
# Part of Slurm's prolog: notes the job in the file of each GPU that it has, by which the DCGM exporter names the job of a GPU
# (NVIDIA/dcgm-exporter, "How to include HPC jobs in metric labels"). SLURM_JOB_GPUS has their numbers on every release;
# CUDA_VISIBLE_DEVICES has UUIDs from 25.11 on. Never anything but 0: no job waits for its metrics.
set -uo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin:${PATH:-}

readonly FOLDER=${ULTRACLUSTER_ROOT:-}/run/ultracluster/gpu-jobs
[[ ${SLURM_JOB_ID:-} =~ ^[0-9]+$ && ${SLURM_JOB_GPUS:-} =~ ^[0-9]+(,[0-9]+)*$ ]] || exit 0
# shellcheck disable=SC2016 # the inner shell expands it
timeout --kill-after=1 5 bash -c '
  umask 022
  mkdir -p "$1" && exec 9>"$1/.lock" && flock --wait 3 9 || exit
  for gpu in ${3//,/ }; do
    grep -qxs "$2" "$1/$gpu" || printf "%s\n" "$2" >>"$1/$gpu"
  done' - "$FOLDER" "$SLURM_JOB_ID" "$SLURM_JOB_GPUS" >/dev/null 2>&1 </dev/null
exit 0
