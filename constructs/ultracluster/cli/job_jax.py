"""`ultracluster job jax`: one JAX job for the scheduler of an environment."""

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
    SchedulerOption,
    TeamOption,
    TimeOption,
    WithinOption,
)
from ultracluster.cli.job_resilience import CheckpointsToOption
from ultracluster.cli.terminal import remark


def jax(
    environment: EnvironmentArgument,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes, whole ones.", show_default=False)],
    team: TeamOption = None,
    image: Annotated[
        str | None,
        typer.Option(help="Container image with JAX, libfabric and NCCL's EFA plugin; optional on Slurm."),
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="What python starts; train.py on the Lustre file system by default.")
    ] = None,
    name: NameOption = "train",
    group: GroupOption = None,
    priority: PriorityOption = "normal",
    within: WithinOption = None,
    processes: Annotated[
        int, typer.Option(min=1, help="On a node: 1 with all its GPUs, or one for each GPU.")
    ] = 1,
    time: TimeOption = None,
    checkpoints: CheckpointsOption = None,
    look: LookOption = True,
    scheduler: SchedulerOption = None,
    checkpoints_to: CheckpointsToOption = None,
) -> None:
    """Print one JAX job that starts on all its nodes at once: for `job submit ENV -`, kubectl or `sbatch`.

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
            processes=processes,
            time=time,
            checkpoints=checkpoints,
            look=look,
            scheduler=scheduler,
            checkpoints_to=checkpoints_to,
            framework="jax",
        ),
    )
    for note in made.notes:
        remark(note)
    typer.echo(made.text, nl=False)


__all__ = ["jax"]
