"""How the processes of a JAX job find each other: the same few lines in a pod, and in a step of Slurm.

`jax.distributed.initialize()` reads JAX_COORDINATOR_ADDRESS and JAX_LOCAL_DEVICE_IDS itself (jax 0.10.2,
jax/_src/distributed.py). How many processes there are and which one this is, it finds in Slurm's variables
(jax/_src/clusters/slurm_cluster.py). In a pod it would ask the API of Kubernetes with a token, which pods of
ours do not have (k8s_cluster.py): there the program hands over JAX_NUM_PROCESSES and JAX_PROCESS_ID, as with
Kubeflow's JAX runtime. JAX_LOCAL_DEVICE_IDS is always set: without it JAX under Slurm uses one GPU of each.
"""

from __future__ import annotations

from ultracluster.jobs.training_job import PyTorchJob

_START = """\
rank=$1 master=$2
shift 2
export JAX_COORDINATOR_ADDRESS=$master:@port@ JAX_NUM_PROCESSES=@all@
"""
_ONE = """\
export JAX_PROCESS_ID=$rank JAX_LOCAL_DEVICE_IDS=@devices@
exec python "$@"
"""
_SEVERAL = """\
running=()
trap "kill -TERM \\"\\${running[@]}\\" 2>/dev/null || true" TERM
for ((place = 0; place < @each@; place++)); do
  export JAX_PROCESS_ID=$((rank * @each@ + place)) JAX_LOCAL_DEVICE_IDS=$place
  if [[ -n ${SLURM_JOB_ID:-} ]]; then
    export SLURM_NTASKS=@all@ SLURM_PROCID=$JAX_PROCESS_ID SLURM_LOCALID=$place
  fi
  python "$@" &
  running+=("$!")
done
status=0
while ((status == 0 && ${#running[@]})); do
  left=()
  for one in "${running[@]}"; do
    if kill -0 "$one" 2>/dev/null; then left+=("$one"); else wait "$one" || status=$?; fi
  done
  running=("${left[@]}")
  sleep 1
done
# the others wait for one that failed
((status == 0)) || kill -TERM "${running[@]}" 2>/dev/null || true
wait
exit "$status"
"""
"""No single quotes: on Slurm it stands between them."""


def check_jax(job: PyTorchJob) -> None:
    """Refuse what JAX cannot be started on.

    Raises:
        ValueError: it says why, and what would do.
    """
    kind = job.pool.instance_type
    if job.pool.resource != "nvidia.com/gpu":
        raise ValueError(
            f"--framework jax is for NVIDIA GPUs, and {job.pool.group} ({kind.name}) has none: --group with "
            "another; JAX on Trainium: docs/frameworks.md"
        )
    if job.processes not in (1, job.pool.per_node):
        raise ValueError(
            f"--processes {job.processes}: JAX has one process for a node or one for each GPU. Use: "
            f"--processes 1, or --processes {job.pool.per_node}"
        )
    if job.resilience:
        raise ValueError("--resilience is of HyperPod's training operator, which starts PyTorch only")


def launch(job: PyTorchJob, port: int) -> str:
    """Bash that starts the processes of one node.

    Its arguments are the node's place, the name of the first node, and the program with its own.
    """
    text = _START + (_ONE if job.processes == 1 else _SEVERAL)
    values = {
        "port": port,
        "all": job.nodes * job.processes,
        "each": job.processes,
        "devices": ",".join(str(one) for one in range(job.pool.per_node)),
    }
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text
