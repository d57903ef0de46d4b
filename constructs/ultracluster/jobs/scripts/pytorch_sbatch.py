"""One PyTorch job for Slurm: a batch script. Slurm starts all nodes of a job at once, or none.

A node that fails takes the job's step with it. On HyperPod `srun --auto-resume=1` then starts the step again,
with another node (SageMaker Developer Guide, "Auto-resume"); elsewhere Slurm queues the whole job again. Both
begin with the newest checkpoint.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster
from ultracluster.jobs.jax_launch import check_jax, launch
from ultracluster.jobs.manifests.job_pod import PORT
from ultracluster.jobs.manifests.ray_job import check_ray, words_of
from ultracluster.jobs.scripts.script_parts import LOOK, NEURON_LOOK, NEWEST, RAY, RAY_PORTS, RUN, STEP
from ultracluster.jobs.scripts.within import placement_options
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.jobs.workdir.in_script import VARIABLE
from ultracluster.kubernetes.accelerator_pods import environment_variables
from ultracluster.model import Cluster
from ultracluster.model.observability import collects_on_nodes

PATIENCE_SECONDS = 600
"""For which the nodes of a Ray cluster wait for each other: images are pulled meanwhile."""
SIGNAL_SECONDS = 300
"""Seconds before the time limit at which the program is told to write a checkpoint."""


def sbatch_script(cluster: Cluster, job: PyTorchJob) -> str:
    """The script, ready for `sbatch`.

    Raises:
        ValueError: Slurm cannot do what is asked.
    """
    pool = job.pool
    if job.framework == "jax":
        check_jax(job)
    if job.framework == "ray":
        check_ray(job)
    options = {
        "job-name": job.name,
        "account": job.team,
        "qos": job.priority if job.team else None,  # made with the accounts
        "partition": pool.settings.partition,
        "nodes": str(job.nodes),
        "ntasks-per-node": "1",
        "gpus-per-node": str(pool.per_node) if pool.resource == "nvidia.com/gpu" else None,
        "exclusive": "",
        **placement_options(cluster, job),
        "time": job.time_limit,
        "signal": f"B:USR1@{SIGNAL_SECONDS}",
        # also before its node is mended, and before a lease ends (docs/health.md)
        "comment": "ultracluster:signal=USR1",
        "requeue": None if _auto_resume(cluster) else "",
        "open-mode": "append",  # what was written before a failure stays
        "output": "%x-%j.out",
    }
    head = ["#!/usr/bin/env bash"]
    head += [
        f"#SBATCH --{key}={value}" if value else f"#SBATCH --{key}"
        for key, value in options.items()
        if value is not None
    ]
    kind = pool.instance_type
    interfaces = kind.least_efa_interfaces
    head.append(
        f"# {job.nodes} x {kind.name}, {interfaces} EFA interface{'s' * (interfaces != 1)} each; "
        + ("a part of Ray on each." if job.framework == "ray" else "")
        + (
            f"{job.processes} process{'es' * (job.processes != 1)} on a node."
            if job.framework != "ray"
            else ""
        )
    )
    step = STEP.replace("@newest@", NEWEST if job.checkpoints else "").replace("@torchrun@", _torchrun(job))
    parts = [
        "\n".join([*head, "set -euo pipefail"]),
        "\n".join(_settings(cluster, job)),
        _look(cluster, job) if job.look else "",
        RAY_PORTS if job.framework == "ray" else "",
        step,
        RUN.replace("@srun@", " ".join(_srun(cluster, job))),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


NEURON = "aws.amazon.com/neuron"
METRICS = "/opt/ultracluster/python"
"""Where `ultracluster_metrics` lies on nodes whose metrics are collected (docs/training-metrics.md)."""


def _settings(cluster: Cluster, job: PyTorchJob) -> Iterator[str]:
    if job.checkpoints:
        yield f"export CHECKPOINTS={shlex.quote(job.checkpoints)} # RESUME_FROM is the newest in it, or empty"
    for key, value in environment_variables(job.pool, job.processes).items():
        yield f"export {key}={shlex.quote(value)}"
    if collects_on_nodes(cluster):
        yield f"export PYTHONPATH={METRICS}${{PYTHONPATH:+:$PYTHONPATH}}"
        accelerator = job.pool.instance_type.accelerator
        if accelerator and job.pool.resource == "nvidia.com/gpu":  # of a part of one no peak is known
            yield f"export ULTRACLUSTER_ACCELERATOR={shlex.quote(accelerator.name.lower())}"


def _look(cluster: Cluster, job: PyTorchJob) -> str:
    pool, lustre = job.pool, cluster.lustre_of(job.pool.group)
    expected = {
        "gpus": str(pool.per_node) if pool.resource == "nvidia.com/gpu" else "0",
        "neuron": NEURON_LOOK.replace("@devices@", str(pool.per_node)) if pool.resource == NEURON else "",
        "interfaces": str(pool.instance_type.least_efa_interfaces),
        "shared": lustre.mount_path if lustre else "",
    }
    text = LOOK
    for key, value in expected.items():
        text = text.replace(f"@{key}@", value)
    return text


def _srun(cluster: Cluster, job: PyTorchJob) -> Iterator[str]:
    yield "srun"
    yield "--auto-resume=1" if _auto_resume(cluster) else "--kill-on-bad-exit=1"
    if not job.image:
        return
    yield shlex.quote(f"--container-image={job.image}")
    if job.workdir:
        yield f'--container-workdir="${VARIABLE}"'
    home = cluster.environment.storage.openzfs
    mounts = [one.mount_path for one in cluster.lustres_of(job.pool.group).values()]
    mounts += [home.mount_path] if home else []
    mounts += [path for path in (_local_disks(cluster, job),) if path]
    if mounts:
        yield shlex.quote(f"--container-mounts={','.join(f'{path}:{path}' for path in mounts)}")


def _torchrun(job: PyTorchJob) -> str:
    if job.framework == "jax":
        return f'set -- "$rank" "$master" {shlex.quote(job.script)}\n{launch(job, PORT)}'.rstrip("\n")
    if job.framework == "ray":
        return _ray(job)
    return (
        f"exec torchrun --nnodes={job.nodes} --nproc-per-node={job.processes} "
        f'--node-rank="$rank" --master-addr="$master" --master-port={PORT} {shlex.quote(job.script)}'
    )


def _ray(job: PyTorchJob) -> str:
    words = [
        f'"{word}"' if "[" in word else word for word in words_of(job)
    ]  # no single quotes: STEP has them
    values = {
        "gpus": job.pool.per_node,
        "nodes": job.nodes,
        "patience": PATIENCE_SECONDS,
        "command": " \\\n  ".join([" ".join(words[:3]), *words[3:]]),
    }
    text = RAY
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text.rstrip("\n")


def _auto_resume(cluster: Cluster) -> bool:
    """Return whether the service starts steps again; on others Slurm queues the job again."""
    return isinstance(cluster.settings, HyperPodSlurm)


def _local_disks(cluster: Cluster, job: PyTorchJob) -> str | None:
    if not job.pool.instance_type.local_nvme_disks:
        return None
    if isinstance(cluster.settings, ParallelCluster):
        return cluster.settings.nvme_mount_path
    return "/scratch" if cluster.runs_scripts else None
