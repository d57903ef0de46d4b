"""Requests for a job, and the text that follows: manifests for Kubernetes, or a script for Slurm."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ultracluster.jobs.manifests.preload_job import preload_job
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.manifests.resilience import image_note
from ultracluster.jobs.preload import check_preload
from ultracluster.jobs.queue.protocol import PROGRAM
from ultracluster.jobs.ray_recipe import recipe_words
from ultracluster.jobs.scripts.preload_sbatch import preload_sbatch
from ultracluster.jobs.scripts.pytorch_sbatch import sbatch_script
from ultracluster.jobs.scripts.within import placement_note
from ultracluster.jobs.training_job import PyTorchJob, Resilience, reserved_nodes
from ultracluster.kubernetes.isolation import job_namespace, job_user
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.job_fit import check_job, check_team, job_pool
from ultracluster.model.team_shares import Pool, scheduler_of
from ultracluster.plan.training_model import parameters

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._:/@#+-]{0,400}")
_SCRIPT = re.compile(r"[A-Za-z0-9/._-]{1,400}")
_FOLDER = re.compile(r"/[A-Za-z0-9/._-]{1,400}")
_SIZES = re.compile(r"[1-9]\d{0,3}(,[1-9]\d{0,3}){1,31}")
_TIME = re.compile(r"\d{1,4}-\d{1,2}(:\d{2}){0,2}|\d{1,6}(:\d{2}){0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options, as they were typed."""

    nodes: int
    team: str | None = None
    image: str | None = None
    script: str | None = None
    name: str = "train"
    group: str | None = None
    priority: Literal["low", "normal", "high"] = "normal"
    within: Literal["layer-1", "layer-2", "layer-3", "ultraserver"] | None = None
    processes: int | None = None
    time: str | None = None
    checkpoints: str | None = None
    look: bool = True
    scheduler: Literal["kueue", "volcano", "kai"] | None = None
    resilience: Literal["restart", "checkpointless", "elastic"] | None = None
    spares: int = 0
    most_nodes: int | None = None
    step: int = 1
    sizes: str | None = None
    log_line: str | None = None
    log_seconds: int = 600
    checkpoints_to: Literal["memory", "s3"] | None = None
    framework: Literal["pytorch", "jax", "ray"] = "pytorch"
    recipe: str | None = None
    """Recipe on Ray; its model, how large that is, and its data."""
    model: str | None = None
    model_size: str | None = None
    data: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A job's text, and what to know about it."""

    text: str
    notes: tuple[str, ...]


def job_text(cluster: Cluster, wishes: Wishes, *, program: str = "", workdir: bool = False) -> Written:
    """The text of the job.

    Args:
        program: name of a file that travels with the job, which torchrun starts instead of a script there.
        workdir: a folder travels with the job, which starts there.

    Raises:
        ValueError: there can be none.
    """
    wanted = wanted_job(cluster, wishes)
    wanted = _on_slurm(cluster, wanted, wishes.time, wishes.checkpoints, look=wishes.look)
    asked = resilience_of(wishes)
    if asked:
        check_job(cluster, wanted.pool, reserved_nodes(wishes.nodes, asked), wishes.team)
    wanted = replace(wanted, resilience=asked, checkpoints_to=wishes.checkpoints_to)
    wanted = replace(
        wanted, framework=wishes.framework, program=_recipe_words(wanted, wishes), workdir=workdir
    )
    if workdir and wishes.script is None:
        wanted = replace(wanted, script="train.py")
    if program:
        wanted = replace(wanted, script=_program_place(cluster, program))
    text = _text(cluster, wanted)
    notes = (
        _user_note(cluster, wishes.team),
        _placement_note(cluster, wanted),
        image_note(wanted),
    )
    return Written(text, tuple(note for note in notes if note))


def preload_text(cluster: Cluster, path: str, wishes: Wishes) -> Written:
    """The text of a job that loads the files of a folder from S3.

    Raises:
        ValueError: there can be none.
    """
    pool = wanted_job(cluster, wishes).pool
    note = check_preload(cluster, pool.group, path)
    nodes, name, team, image = wishes.nodes, wishes.name, wishes.team, wishes.image
    if cluster.kubernetes is None:
        if image:
            raise ValueError(f"--image is for Kubernetes, and this is {cluster.settings.kind}")
        text = preload_sbatch(pool, path, nodes=nodes, name=name, team=team)
    elif image:
        text = yaml_text(preload_job(cluster, pool, path, nodes=nodes, name=name, team=team, image=image))
    else:
        raise ValueError("a pod needs an image: --image, with bash, find and xargs")
    return Written(text, (note,) if note else ())


def resilience_of(wishes: Wishes) -> Resilience | None:
    """Answer to failures that is asked for; None without --resilience.

    Raises:
        ValueError: a part of it without --resilience, or in another form.
    """
    if wishes.resilience is None:
        for name, value in (
            ("--spares", wishes.spares),
            ("--most-nodes", wishes.most_nodes),
            ("--step", wishes.step != 1),
            ("--sizes", wishes.sizes),
            ("--log-line", wishes.log_line),
        ):
            if value:
                raise ValueError(f"{name} is for jobs of HyperPod's training operator: --resilience")
        return None
    sizes = wishes.sizes
    if sizes is not None and not _SIZES.fullmatch(sizes):
        raise ValueError(f"--sizes {sizes!r} has another form than 2,4,8")
    if wishes.log_line is not None:
        _check_pattern(wishes.log_line)
    return Resilience(
        kind=wishes.resilience,
        spares=wishes.spares,
        most_nodes=wishes.most_nodes,
        step=wishes.step,
        sizes=tuple(int(size) for size in sizes.split(",")) if sizes else (),
        log_line=wishes.log_line,
        log_seconds=wishes.log_seconds,
    )


def _check_pattern(log_line: str) -> None:
    try:
        re.compile(log_line)
    except re.error as error:
        raise ValueError(f"--log-line {log_line!r} is no regular expression: {error}") from None
    if any(ord(character) < 32 for character in log_line):
        raise ValueError("--log-line is one line")


def _recipe_words(wanted: PyTorchJob, wishes: Wishes) -> tuple[str, ...]:
    """The program of a recipe; empty without one.

    Raises:
        ValueError: something of it is missing, or its model does not fit.
    """
    parts = {"--model": wishes.model, "--model-size": wishes.model_size, "--data": wishes.data}
    if wishes.recipe is None:
        if names := [name for name, value in parts.items() if value is not None]:
            raise ValueError(f"{', '.join(names)}: of a recipe, and there is no --recipe")
        return ()
    if missing := [name for name, value in parts.items() if value is None]:
        raise ValueError(f"{', '.join(missing)} is missing: --recipe requires it")
    if wishes.script is not None:
        raise ValueError("--script and --recipe: a job starts one of them")
    for name, value in (("--model", wishes.model), ("--data", wishes.data)):
        if not _SCRIPT.fullmatch(str(value)):
            raise ValueError(f"{name} {value!r} has characters that are not allowed there")
    return recipe_words(
        wishes.recipe,
        wanted.pool,
        wanted.nodes,
        parameters=parameters(str(wishes.model_size)),
        model=str(wishes.model),
        data=str(wishes.data),
        job=wanted.name,
        checkpoints=wanted.checkpoints or f"checkpoints/{wanted.name}",
    )


def _program_place(cluster: Cluster, program: str) -> str:
    """Return what stands in the text for a program that travels with the job."""
    return f"/ultracluster/program/{program}" if cluster.kubernetes else PROGRAM


def _user_note(cluster: Cluster, team: str | None) -> str:
    """Return who the processes are, where that is not the image's to say: what it must find out otherwise."""
    if not cluster.kubernetes:
        return ""

    user, space = job_user(cluster, team), job_namespace(cluster, team)
    if user is None:
        return ""
    named = f"teams.{team}.uid" if space.uid is not None else f"`{space.name}` is {space.level}: no root"
    return (
        f"The job runs as user {user} ({named}): folders that it writes must be that user's. "
        "An image that must run as root needs pod_security: baseline, and no uid."
    )


def _placement_note(cluster: Cluster, wanted: PyTorchJob) -> str:
    """Return what becomes of --within, where that is not certain."""
    if cluster.kubernetes:
        return _neuron_link_note(wanted)

    return placement_note(cluster, wanted)


def _neuron_link_note(wanted: PyTorchJob) -> str:
    """Near is not yet joined: the Neuron runtime must be told."""
    kind = wanted.pool.instance_type
    if wanted.within != "ultraserver" or kind.link != "NeuronLink":
        return ""
    return (
        "The job stays in one UltraServer. Between its instances it uses NeuronLink when the program tells "
        "the Neuron runtime each node's place (NEURON_RT_ULTRASERVER_MODE, _SERVER_ID, _NODE_ID from "
        "/sys/class/neuron_device), else EFA: docs/wishes/trainium-ultraservers.md."
    )


def _on_slurm(
    cluster: Cluster, wanted: PyTorchJob, time: str | None, checkpoints: str | None, *, look: bool
) -> PyTorchJob:
    """Return what only a batch script has.

    Raises:
        ValueError: it cannot be written, or this is Kubernetes.
    """
    for what, value, form in (("--time", time, _TIME), ("--checkpoints", checkpoints, _FOLDER)):
        if value is not None and cluster.kubernetes:
            raise ValueError(f"{what} is for Slurm, and this is {cluster.settings.kind}")
        if value is not None and not form.fullmatch(value):
            example = "2-00:00:00" if what == "--time" else "/fsx/checkpoints"
            raise ValueError(f"{what} {value!r} has another form than {example}")
    if checkpoints is None and (lustre := cluster.lustre_of(wanted.pool.group)):
        checkpoints = f"{lustre.mount_path}/checkpoints/{wanted.name}"
    return replace(wanted, time_limit=time, checkpoints=checkpoints, look=look)


def wanted_job(cluster: Cluster, wishes: Wishes) -> PyTorchJob:
    """Return what every job has.

    Raises:
        ValueError: there can be no such job.
    """
    pool = job_pool(cluster, wishes.group)
    check_team(cluster, wishes.team)
    check_job(cluster, pool, wishes.nodes, wishes.team)
    for what, value, form in (
        ("--name", wishes.name, _NAME),
        ("--image", wishes.image, _IMAGE),
        ("--script", wishes.script, _SCRIPT),
    ):
        if value is not None and not form.fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that are not allowed there")
    processes = _processes(pool, wishes.processes)
    lustre = cluster.lustre_of(pool.group)
    return PyTorchJob(
        pool=pool,
        nodes=wishes.nodes,
        name=wishes.name,
        script=wishes.script or (f"{lustre.mount_path}/train.py" if lustre else "train.py"),
        processes=processes,
        image=wishes.image,
        team=wishes.team,
        priority=wishes.priority,
        within=wishes.within,
    )


def _processes(pool: Pool, asked: int | None) -> int:
    """Of a node: one for each GPU, or for each NeuronCore that programs see.

    Raises:
        ValueError: its cores are unknown, or fewer.
    """
    kind = pool.instance_type
    if pool.resource.startswith("nvidia.com/"):
        return asked or pool.per_node
    cores = kind.logical_neuron_cores
    if cores is None and asked is None:
        raise ValueError(f"how many NeuronCores a node of {kind.name} has is not known: --processes")
    if cores and asked and asked > cores * kind.neuron_cores_joined:
        raise ValueError(
            f"--processes {asked}: a node of {kind.name} has {cores * kind.neuron_cores_joined} NeuronCores. "
            f"Use at most: --processes {cores * kind.neuron_cores_joined}"
        )
    return asked or cores or 1


def _text(cluster: Cluster, wanted: PyTorchJob) -> str:

    if scheduler_of(cluster) == "slurm":
        if wanted.resilience or wanted.checkpoints_to:
            raise ValueError(
                "--resilience and --checkpoints-to are for HyperPod on EKS, and this is "
                f"{cluster.settings.kind}: its jobs load their newest checkpoint when they start again"
            )
        return sbatch_script(cluster, wanted)
    return "---\n".join(yaml_text(manifest) for manifest in pytorch_manifests(cluster, wanted))
