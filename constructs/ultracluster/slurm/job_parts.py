"""Parts of a batch script for training, as bash. `@name@` is filled in by `pytorch_sbatch`.

The program that torchrun starts gets SIGUSR1 before the time limit, before its job gives way to another one,
and before its node is taken (docs/slurm-jobs.md); whoever has no handler for it goes on.
"""

from __future__ import annotations

LOOK = """\
# What each node must have: one that lacks it is named at once.
# shellcheck disable=SC2016 # nodes expand it
readonly LOOK='
gpus=@gpus@ interfaces=@interfaces@ shared=@shared@
lacks=()
if ((gpus)); then
  found=$(nvidia-smi -L 2>/dev/null | grep -c "^GPU" || true)
  ((found >= gpus)) || lacks+=("$found of $gpus GPUs")
fi
@neuron@found=0
for device in /sys/class/infiniband/*/device/driver; do
  [[ $(readlink -f "$device") != */efa ]] || found=$((found + 1))
done
((found >= interfaces)) || lacks+=("$found of $interfaces EFA interfaces")
if [[ -n $shared ]]; then
  timeout 20 stat --file-system "$shared" >/dev/null 2>&1 || lacks+=("an answer from $shared")
fi
((${#lacks[@]} == 0)) || {
  printf "%s lacks: %s\\n" "$SLURMD_NODENAME" "${lacks[*]}" >&2
  exit 1
}
'
srun --ntasks-per-node=1 --time=2 bash -c "$LOOK" || {
  echo "The job ends: see above what a node lacks." >&2
  exit 1
}
"""

NEURON_LOOK = """\
found=$(compgen -G "/dev/neuron[0-9]*" | wc -l)
((found >= @devices@)) || lacks+=("$found of @devices@ Neuron devices")
"""

NEWEST = """\
# The newest that is whole: others begin with a dot or end in .tmp while they are written
mkdir -p "$CHECKPOINTS"
export RESUME_FROM=
for one in "$CHECKPOINTS"/*; do
  if [[ -e $one && $one != *.tmp && (-z $RESUME_FROM || $one -nt $RESUME_FROM) ]]; then RESUME_FROM=$one; fi
done
"""

STEP = """\
# On each node, also when the step starts again: variables of the job then still name the node that is gone.
# In a container there is no scontrol to ask, and the step has a list of its own.
# shellcheck disable=SC2016 # nodes expand it
readonly STEP='
set -euo pipefail
trap "" USR1 # for the program alone: torchrun would end
if command -v scontrol >/dev/null; then
  list=$(scontrol --oneliner show job "$SLURM_JOB_ID" | sed -n "s/.* NodeList=\\([^ ]*\\) .*/\\1/p")
  mapfile -t nodes < <(scontrol show hostnames "$list")
  master=${nodes[0]}
  for rank in "${!nodes[@]}"; do
    [[ ${nodes[rank]} != "$SLURMD_NODENAME" ]] || break
  done
else
  master=${SLURM_STEP_NODELIST%%,*} rank=$SLURM_NODEID
  if [[ $master == *"["* ]]; then
    first=${master#*"["}
    master=${master%%"["*}${first%%[]-]*}
  fi
fi
@newest@@torchrun@
'
"""

RUN = """\
@srun@ bash -c "$STEP" &
readonly TRAINING=$!
told=
trap 'told=yes; echo "Asked for a checkpoint (SIGUSR1)."; scancel --signal=USR1 "$SLURM_JOB_ID"' USR1
status=0
wait "$TRAINING" || status=$?
# a signal ends the wait, not the step
while [[ -n $told ]]; do
  told='' status=0
  wait "$TRAINING" || status=$?
done
exit "$status"
"""
