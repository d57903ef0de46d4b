"""`ultracluster job write`: a job for the scheduler of an environment."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ultracluster.cli.environments import EnvironmentArgument, refuse
from ultracluster.cli.job_options import (
    CheckpointsOption,
    CheckpointsToOption,
    GroupOption,
    ImageOption,
    LogLineOption,
    LogSecondsOption,
    LookOption,
    MostNodesOption,
    NameOption,
    PriorityOption,
    ProcessesOption,
    ResilienceOption,
    SchedulerOption,
    ScriptOption,
    SizesOption,
    SparesOption,
    StepOption,
    TeamOption,
    TimeOption,
    WithinOption,
    typed_options,
)
from ultracluster.cli.job_text import wishes_of, written

_RESILIENT = ("resilience", "spares", "most_nodes", "step", "sizes", "log_line", "log_seconds")
_RECIPE = ("recipe", "model", "model_size", "data")
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "pytorch": _RECIPE,
    "jax": (*_RECIPE, *_RESILIENT),
    "ray": (*_RESILIENT, "processes", "scheduler", "checkpoints_to"),
}
_OF_PRELOAD = {"nodes", "preload", "team", "image", "name", "group"}


def write(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="How many nodes, whole ones.", show_default=False)
    ] = None,
    framework: Annotated[
        Literal["pytorch", "jax", "ray"],
        typer.Option(help="What starts the program: torchrun, python with JAX's variables, or Ray's head."),
    ] = "pytorch",
    preload: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Instead of training: load this folder of a data repository association from S3.",
            show_default=False,
        ),
    ] = "",
    team: TeamOption = None,
    image: ImageOption = None,
    script: ScriptOption = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="On Ray, instead of a script: `verl-grpo`, reinforcement learning by veRL."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Of the recipe: folder of its weights, or its name on Hugging Face.")
    ] = None,
    model_size: Annotated[str | None, typer.Option(help="Parameters of the model, as in 7B.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Of the recipe: folder with train.parquet and test.parquet.")
    ] = None,
    name: NameOption = "train",
    group: GroupOption = None,
    priority: PriorityOption = "normal",
    within: WithinOption = None,
    processes: ProcessesOption = None,
    time: TimeOption = None,
    checkpoints: CheckpointsOption = None,
    look: LookOption = True,
    scheduler: SchedulerOption = None,
    resilience: ResilienceOption = None,
    spares: SparesOption = 0,
    most_nodes: MostNodesOption = None,
    step: StepOption = 1,
    sizes: SizesOption = None,
    log_line: LogLineOption = None,
    log_seconds: LogSecondsOption = 600,
    checkpoints_to: CheckpointsToOption = None,
) -> None:
    """Print a job that starts on all its nodes at once: for `job submit ENV -`, kubectl or `sbatch`.

    Exit code 2 if there can be none.
    """
    options = typed_options(context)
    if preload:
        if others := [option for one, option in options.items() if one not in _OF_PRELOAD]:
            refuse(f"{', '.join(others)}: not with --preload, which starts no program")
        name = name if "name" in options else "preload"
    elif others := [options[one] for one in _NOT_FOR[framework] if one in options]:
        refuse(f"{', '.join(others)}: not with --framework {framework}")
    if nodes is None and not preload:
        refuse("the option --nodes is missing: how many nodes the job has")
    if framework == "jax":
        processes = processes or 1
    wishes = wishes_of(context, nodes=nodes or 1, name=name, processes=processes)
    typer.echo(written(environment, wishes, preload=preload)[1], nl=False)
