"""`ultracluster job ray`: one job on Ray for the scheduler of an environment."""

from __future__ import annotations

from typing import Annotated

import typer

from ultracluster.cli.environments import EnvironmentArgument
from ultracluster.cli.job_options import (
    CheckpointsOption,
    GroupOption,
    LookOption,
    NameOption,
    PriorityOption,
    TeamOption,
    TimeOption,
    WithinOption,
)
from ultracluster.cli.terminal import remark


def ray(
    environment: EnvironmentArgument,
    nodes: Annotated[
        int, typer.Option(min=1, help="How many nodes, whole ones, the head's too.", show_default=False)
    ],
    team: TeamOption = None,
    image: Annotated[
        str | None,
        typer.Option(help="Container image with Ray, libfabric and NCCL's EFA plugin; optional on Slurm."),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(help="What python starts on the head; train.py on the Lustre file system by default."),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="Instead of a script: `verl-grpo`, reinforcement learning by veRL.")
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
    time: TimeOption = None,
    checkpoints: CheckpointsOption = None,
    look: LookOption = True,
) -> None:
    """Print one job with a Ray cluster on its nodes: for `job submit ENV -`, kubectl or `sbatch`.

    Exit code 2 if there can be none.
    """
    from ultracluster.cli.job_text import Wishes, written

    made = written(
        environment,
        Wishes(
            nodes=nodes,
            team=team,
            image=image,
            script=script,
            name=name,
            group=group,
            priority=priority,
            within=within,
            time=time,
            checkpoints=checkpoints,
            look=look,
            framework="ray",
            recipe=recipe,
            model=model,
            model_size=model_size,
            data=data,
        ),
    )
    for note in made.notes:
        remark(note)
    typer.echo(made.text, nl=False)


__all__ = ["ray"]
