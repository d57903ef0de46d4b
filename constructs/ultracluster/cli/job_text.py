"""The text of a PyTorch job, of what `job pytorch` and `job submit` are told."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ultracluster.cli.environments import load_file, refuse
from ultracluster.cli.job_resilience import check_room, resilience_of
from ultracluster.config import Environment, InvalidEnvironmentError
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.jobs.training_job import PyTorchJob
    from ultracluster.model import Cluster
    from ultracluster.model.team_shares import Pool

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._:/@#+-]{0,400}")
_SCRIPT = re.compile(r"[A-Za-z0-9/._-]{1,400}")
_FOLDER = re.compile(r"/[A-Za-z0-9/._-]{1,400}")
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
    """A job's text, of which cluster, and what to know about it."""

    cluster: Cluster
    text: str
    notes: tuple[str, ...]


def written(environment: Path, wishes: Wishes, *, program: str = "") -> Written:
    """The text of the job; exit code 2 if there can be none.

    Args:
        program: name of a file that travels with the job, which torchrun starts instead of a script there.
    """
    cluster = resolve(accepted(environment, wishes.scheduler))
    try:
        wanted = wanted_job(cluster, wishes)
        wanted = _on_slurm(cluster, wanted, wishes.time, wishes.checkpoints, look=wishes.look)
        asked = resilience_of(
            wishes.resilience,
            spares=wishes.spares,
            most_nodes=wishes.most_nodes,
            step=wishes.step,
            sizes=wishes.sizes,
            log_line=wishes.log_line,
            log_seconds=wishes.log_seconds,
        )
        check_room(cluster, wishes.group, wishes.nodes, wishes.team, asked)
        wanted = replace(wanted, resilience=asked, checkpoints_to=wishes.checkpoints_to)
        wanted = replace(wanted, framework=wishes.framework, program=_recipe_words(wanted, wishes))
        if program:
            wanted = replace(wanted, script=_program_place(cluster, program))
        text = _text(cluster, wanted)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    notes = (_user_note(cluster, wishes.team), _placement_note(cluster, wanted), _image_note(wanted))
    return Written(cluster, text, tuple(note for note in notes if note))


def _recipe_words(wanted: PyTorchJob, wishes: Wishes) -> tuple[str, ...]:
    """The program of a recipe; empty without one.

    Raises:
        ValueError: something of it is missing, or its model does not fit.
    """
    from ultracluster.jobs.ray_recipe import recipe_words
    from ultracluster.plan.training_model import parameters

    parts = {"--model": wishes.model, "--model-size": wishes.model_size, "--data": wishes.data}
    if wishes.recipe is None:
        if given := [name for name, value in parts.items() if value is not None]:
            raise ValueError(f"{', '.join(given)}: of a recipe, and there is no --recipe")
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


def wanted_job(cluster: Cluster, wishes: Wishes) -> PyTorchJob:
    """What every job has.

    Raises:
        ValueError: there can be no such job.
    """
    return _job(
        cluster,
        wishes.nodes,
        wishes.team,
        wishes.image,
        wishes.script,
        wishes.name,
        wishes.group,
        wishes.priority,
        wishes.within,
        wishes.processes,
    )


def _program_place(cluster: Cluster, program: str) -> str:
    """What stands in the text for a program that travels with the job."""
    from ultracluster.jobs.queue.protocol import PROGRAM

    return f"/ultracluster/program/{program}" if cluster.kubernetes else PROGRAM


def _user_note(cluster: Cluster, team: str | None) -> str:
    """Who the processes are, where that is not the image's to say: what it must find out otherwise."""
    if not cluster.kubernetes:
        return ""
    from ultracluster.kubernetes.isolation import job_namespace, job_user

    user, space = job_user(cluster, team), job_namespace(cluster, team)
    if user is None:
        return ""
    named = f"teams.{team}.uid" if space.uid is not None else f"`{space.name}` is {space.level}: no root"
    return (
        f"The job runs as user {user} ({named}): folders that it writes must be that user's. "
        "An image that must run as root needs pod_security: baseline, and no uid."
    )


def _image_note(wanted: PyTorchJob) -> str:
    """What the image must have for HyperPod's operator and for tiered checkpoints."""
    from ultracluster.jobs.manifests.resilience import image_note

    return image_note(wanted)


def _placement_note(cluster: Cluster, wanted: PyTorchJob) -> str:
    """What becomes of --within, where that is not certain."""
    if cluster.kubernetes:
        return _neuron_link_note(wanted)
    from ultracluster.jobs.scripts.within import placement_note

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
    """What only a batch script has.

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


def accepted(path: Path, scheduler: str | None) -> Environment:
    """The environment, which breaks no rule, perhaps as if it had another scheduler; else exit code 2."""
    from ultracluster.config.kubernetes import HyperPodEks
    from ultracluster.rules import enforce

    try:
        loaded = load_file(path)
        config = loaded.environment
        if scheduler:
            orchestrator = config.kubernetes
            if orchestrator is None:
                kind = config.orchestrator.kind
                refuse(f"{path}: --scheduler {scheduler} is for Kubernetes, and this is {kind}")
            changed: dict[str, object] = {"scheduler": scheduler}
            if isinstance(orchestrator, HyperPodEks):
                changed["task_governance"] = False
            other = orchestrator.model_copy(update=changed)
            loaded = type(loaded)(config.model_copy(update={"orchestrator": other}), loaded.source)
        enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse(str(error))
    return loaded.environment


def _job(
    cluster: Cluster,
    nodes: int,
    team: str | None,
    image: str | None,
    script: str | None,
    name: str,
    group: str | None,
    priority: str,
    within: str | None,
    processes: int | None,
) -> PyTorchJob:
    from ultracluster.jobs.training_job import PyTorchJob
    from ultracluster.model.job_fit import check_job, job_pool

    pool = job_pool(cluster, group)
    check_team(list(cluster.environment.teams), team)
    check_job(cluster, pool, nodes, team)
    for what, value, form in (
        ("--name", name, _NAME),
        ("--image", image, _IMAGE),
        ("--script", script, _SCRIPT),
    ):
        if value is not None and not form.fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that are not allowed there")
    processes = _processes(pool, processes)
    if script is None:
        lustre = cluster.lustre_of(pool.group)
        script = f"{lustre.mount_path}/train.py" if lustre else "train.py"
    return PyTorchJob(
        pool=pool,
        nodes=nodes,
        name=name,
        script=script,
        processes=processes,
        image=image,
        team=team,
        priority=priority,
        within=within,
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
    from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
    from ultracluster.jobs.scripts.pytorch_sbatch import sbatch_script
    from ultracluster.kubernetes.yaml_text import yaml_text
    from ultracluster.model.team_shares import scheduler_of

    if scheduler_of(cluster) == "slurm":
        if wanted.resilience or wanted.checkpoints_to:
            raise ValueError(
                "--resilience and --checkpoints-to are for HyperPod on EKS, and this is "
                f"{cluster.settings.kind}: its jobs load their newest checkpoint when they start again"
            )
        return sbatch_script(cluster, wanted)
    return "---\n".join(yaml_text(one) for one in pytorch_manifests(cluster, wanted))


def check_team(teams: list[str], team: str | None) -> None:
    """Whether that is one of the teams.

    Raises:
        ValueError: it is not, or one must be named.
    """
    if team is None and teams:
        raise ValueError(f"This environment has teams: pass --team ({', '.join(teams)}).")
    if team is not None and team not in teams:
        near = difflib.get_close_matches(team, teams, n=1)
        raise ValueError(
            f"there is no team `{team}`: "
            + (
                f"--team {near[0]}"
                if near
                else f"one of {', '.join(teams)}"
                if teams
                else "the environment has none"
            )
        )


__all__ = ["Wishes", "Written", "accepted", "check_team", "wanted_job", "written"]
