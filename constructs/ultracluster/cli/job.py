"""`ultracluster job ...`: jobs for the scheduler of an environment."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ultracluster.cli import serving
from ultracluster.cli.environments import EnvironmentArgument, load_file, refuse
from ultracluster.cli.job_resilience import (
    CheckpointsToOption,
    LogLineOption,
    LogSecondsOption,
    MostNodesOption,
    ResilienceOption,
    SizesOption,
    SparesOption,
    StepOption,
    check_room,
    resilience_of,
)
from ultracluster.config import Environment, InvalidEnvironmentError
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.kubernetes.pytorch_job import PyTorchJob
    from ultracluster.model import Cluster
    from ultracluster.model.team_shares import Pool

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Jobs for the scheduler of an environment.",
)

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._:/@#+-]{0,400}")
_SCRIPT = re.compile(r"[A-Za-z0-9/._-]{1,400}")
_FOLDER = re.compile(r"/[A-Za-z0-9/._-]{1,400}")
_TIME = re.compile(r"\d{1,4}-\d{1,2}(:\d{2}){0,2}|\d{1,6}(:\d{2}){0,2}")


@app.callback()
def job() -> None:
    """Jobs for the scheduler of an environment."""


app.command("endpoint")(serving.endpoint)
app.command("serve")(serving.serve)


@app.command()
def pytorch(
    environment: EnvironmentArgument,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes, whole ones.", show_default=False)],
    team: Annotated[
        str | None, typer.Option(help="Team of the job; required if the environment has teams.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Container image with PyTorch, libfabric and NCCL's EFA plugin; optional on Slurm."
        ),
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="What torchrun starts; train.py on the Lustre file system by default.")
    ] = None,
    name: Annotated[str, typer.Option(help="Of the job.")] = "train",
    group: Annotated[
        str | None, typer.Option(help="Node group; the first with accelerators by default.")
    ] = None,
    priority: Annotated[Literal["low", "normal", "high"], typer.Option(help="Of the job.")] = "normal",
    within: Annotated[
        Literal["layer-1", "layer-2", "layer-3", "ultraserver"] | None,
        typer.Option(help="Do not start unless all nodes share this level of the network."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="On a node; one for each GPU or logical NeuronCore by default.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Time limit on Slurm, e.g. `2-00:00:00`; the partition's by default."),
    ] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(help="Folder of checkpoints, on Slurm; checkpoints/NAME on Lustre by default."),
    ] = None,
    look: Annotated[
        bool,
        typer.Option("--look/--no-look", help="On Slurm: look at the nodes before the job starts on them."),
    ] = True,
    scheduler: Annotated[
        Literal["kueue", "volcano", "kai"] | None,
        typer.Option(help="As if the environment had this scheduler; its own by default."),
    ] = None,
    resilience: ResilienceOption = None,
    spares: SparesOption = 0,
    most_nodes: MostNodesOption = None,
    step: StepOption = 1,
    sizes: SizesOption = None,
    log_line: LogLineOption = None,
    log_seconds: LogSecondsOption = 600,
    checkpoints_to: CheckpointsToOption = None,
) -> None:
    """Print one PyTorch job that starts on all its nodes at once: for `kubectl apply -f -`, or for `sbatch`.

    Exit code 2 if there can be none.
    """

    cluster = resolve(_valid(environment, scheduler))
    try:
        wanted = _job(cluster, nodes, team, image, script, name, group, priority, within, processes)
        wanted = _on_slurm(cluster, wanted, time, checkpoints, look=look)
        asked = resilience_of(
            resilience,
            spares=spares,
            most_nodes=most_nodes,
            step=step,
            sizes=sizes,
            log_line=log_line,
            log_seconds=log_seconds,
        )
        check_room(cluster, group, nodes, team, asked)
        wanted = replace(wanted, resilience=asked, checkpoints_to=checkpoints_to)
        text = _text(cluster, wanted)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    for note in (_user_note(cluster, team), _placement_note(cluster, wanted), _image_note(wanted)):
        if note:
            typer.echo(note, err=True)
    typer.echo(text, nl=False)


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
    from ultracluster.kubernetes.resilience import image_note

    return image_note(wanted)


def _placement_note(cluster: Cluster, wanted: PyTorchJob) -> str:
    """What becomes of --within, where that is not certain."""
    if cluster.kubernetes:
        return _neuron_link_note(wanted)
    from ultracluster.slurm.within import placement_note

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


def _valid(path: Path, scheduler: str | None) -> Environment:
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
    from ultracluster.kubernetes.pytorch_job import PyTorchJob
    from ultracluster.model.job_fit import check_job, job_pool

    pool = job_pool(cluster, group)
    _check_team(list(cluster.environment.teams), team)
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
    from ultracluster.kubernetes.pytorch_job import pytorch_manifests
    from ultracluster.kubernetes.yaml_text import yaml_text
    from ultracluster.model.team_shares import scheduler_of
    from ultracluster.slurm.pytorch_sbatch import sbatch_script

    if scheduler_of(cluster) == "slurm":
        if wanted.resilience or wanted.checkpoints_to:
            raise ValueError(
                "--resilience and --checkpoints-to are for HyperPod on EKS, and this is "
                f"{cluster.settings.kind}: its jobs load their newest checkpoint when they start again"
            )
        return sbatch_script(cluster, wanted)
    return "---\n".join(yaml_text(one) for one in pytorch_manifests(cluster, wanted))


def _check_team(teams: list[str], team: str | None) -> None:
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
