"""One PyTorch job for Slurm: a batch script. Slurm starts all nodes of a job at once, or none."""

from __future__ import annotations

import shlex

from ultracluster.kubernetes.job_pod import PORT, PyTorchJob, environment_variables
from ultracluster.model import Cluster


def sbatch_script(cluster: Cluster, job: PyTorchJob) -> str:
    """The script, ready for `sbatch`.

    Raises:
        ValueError: Slurm cannot do what is asked.
    """
    if job.within not in (None, "layer-3"):
        raise ValueError(
            f"Slurm knows switches, not `{job.within}`: --within layer-3 keeps a job below one of them"
        )
    pool, storage = job.pool, cluster.environment.storage
    instance_type = pool.instance_type
    gpus = pool.resource == "nvidia.com/gpu"
    options = {
        "job-name": job.name,
        "account": job.team,
        "qos": job.priority if job.team else None,  # made with the accounts
        "partition": pool.settings.partition,
        "nodes": str(job.nodes),
        "ntasks-per-node": "1",
        "gpus-per-node": str(pool.per_node) if gpus else None,
        "exclusive": "",
        "switches": "1" if job.within else None,
        "output": "%x-%j.out",
    }
    lines = ["#!/usr/bin/env bash"]
    lines += [
        f"#SBATCH --{key}={value}" if value else f"#SBATCH --{key}"
        for key, value in options.items()
        if value is not None
    ]
    lines.append(
        f"# {job.nodes} x {instance_type.name}, {instance_type.least_efa_interfaces} EFA interfaces each; "
        f"{job.processes} processes on a node."
    )
    lines += [
        "set -euo pipefail",
        "",
        # all of it: with pipefail, a reader that stops after the first line fails the job now and then
        'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        "MASTER_ADDR=${NODES[0]}",
        "export MASTER_ADDR",
    ]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in environment_variables(pool).items()]
    step = ["srun"]
    if job.image:
        mounts = [
            f"{file_system.mount_path}:{file_system.mount_path}"
            for file_system in (storage.lustre, storage.openzfs)
            if file_system
        ]
        step.append(shlex.quote(f"--container-image={job.image}"))
        if mounts:
            step.append(shlex.quote(f"--container-mounts={','.join(mounts)}"))
    command = (
        f"exec torchrun --nnodes={job.nodes} --nproc-per-node={job.processes} "
        f'--node-rank="$SLURM_NODEID" --master-addr="$MASTER_ADDR" --master-port={PORT} '
        f"{shlex.quote(job.script)}"
    )
    lines += [
        "",
        "# shellcheck disable=SC2016 # each node has its own rank",
        f"{' '.join(step)} \\",
        f"  bash -c {shlex.quote(command)}",
    ]
    return "\n".join(lines) + "\n"


__all__ = ["sbatch_script"]
