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

RAY = """\
export RAY_ADDRESS=$master:$RAY_PORT
ray_is_up() { (exec 3<>"/dev/tcp/$master/$RAY_PORT") 2>/dev/null; }
options=(--disable-usage-stats --num-gpus=@gpus@ --num-cpus="$SLURM_CPUS_ON_NODE")
if ((rank)); then
  until ray_is_up; do
    ((SECONDS < @patience@)) || {
      echo "$SLURMD_NODENAME: nothing answers at $RAY_ADDRESS" >&2
      exit 1
    }
    sleep 1
  done
  status=0
  # seconds after which a node without a head ends
  export RAY_gcs_rpc_server_reconnect_timeout_s=30
  ray start --address="$RAY_ADDRESS" --block "${options[@]}" || status=$?
  # without a head the program has ended, and its own exit code counts
  ! ray_is_up || exit "$status"
  exit 0
fi
trap "ray stop" EXIT
options+=(--dashboard-host=127.0.0.1 --dashboard-port="$RAY_DASHBOARD_PORT")
ray start --head --port="$RAY_PORT" "${options[@]}"
python3 -c "
import sys, time
import ray
address, nodes, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end = time.monotonic() + patience
ray.init(address=address)
while (up := sum(one[\\"Alive\\"] for one in ray.nodes())) < nodes:
    if time.monotonic() > end:
        sys.exit(f\\"{up} of {nodes} nodes are in Ray after {patience} seconds\\")
    time.sleep(1)
" "$RAY_ADDRESS" @nodes@ @patience@
@command@
"""

RAY_PORTS = """\
# This script runs on the first node, where the head of Ray will be: ports at which nothing listens there
free_port() {
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}
RAY_PORT=$(free_port $((20000 + SLURM_JOB_ID % 10000)))
RAY_DASHBOARD_PORT=$(free_port 8265)
# Ray's own place of a token, which only its owner reads; it is needed for the dashboard, too
if [[ ! -s ~/.ray/auth_token ]]; then
  (umask 077 && mkdir -p ~/.ray && od -An -N32 -tx1 /dev/urandom | tr -d " \\n" >~/.ray/auth_token)
fi
RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(<~/.ray/auth_token)
export RAY_PORT RAY_DASHBOARD_PORT RAY_AUTH_MODE RAY_AUTH_TOKEN
echo "Dashboard of Ray: ultracluster job shell ENV --job $SLURM_JOB_ID --forward $RAY_DASHBOARD_PORT"
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
