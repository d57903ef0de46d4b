"""`ultracluster job ...`: jobs for the scheduler of an environment."""

from __future__ import annotations

from typing import Annotated

import typer

from ultracluster.cli import job_jax, job_preload, job_queue, job_ray, job_shell, serving
from ultracluster.cli.environments import EnvironmentArgument
from ultracluster.cli.job_options import (
    CheckpointsOption,
    GroupOption,
    ImageOption,
    LookOption,
    NameOption,
    PriorityOption,
    ProcessesOption,
    SchedulerOption,
    ScriptOption,
    TeamOption,
    TimeOption,
    WithinOption,
)
from ultracluster.cli.job_resilience import (
    CheckpointsToOption,
    LogLineOption,
    LogSecondsOption,
    MostNodesOption,
    ResilienceOption,
    SizesOption,
    SparesOption,
    StepOption,
)
from ultracluster.cli.job_text import Wishes, written
from ultracluster.cli.terminal import remark

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Jobs for the scheduler of an environment.",
)


@app.callback()
def job() -> None:
    """Jobs for the scheduler of an environment."""


app.command("cancel")(job_queue.cancel)
app.command("endpoint")(serving.endpoint)
app.command("jax")(job_jax.jax)
app.command("list")(job_queue.list_jobs)
app.command("logs")(job_queue.logs)
app.command("notebook")(job_shell.notebook)
app.command("preload")(job_preload.preload)
app.command("ray")(job_ray.ray)
app.command("serve")(serving.serve)
app.command("shell")(job_shell.shell)
app.command("submit")(job_queue.submit)


@app.command()
def pytorch(
    environment: EnvironmentArgument,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes, whole ones.", show_default=False)],
    team: TeamOption = None,
    image: ImageOption = None,
    script: ScriptOption = None,
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
    """Print one PyTorch job that starts on all its nodes at once: for `kubectl apply -f -`, or for `sbatch`.

    Exit code 2 if there can be none.
    """
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
            resilience=resilience,
            spares=spares,
            most_nodes=most_nodes,
            step=step,
            sizes=sizes,
            log_line=log_line,
            log_seconds=log_seconds,
            checkpoints_to=checkpoints_to,
        ),
    )
    for note in made.notes:
        remark(note)
    typer.echo(made.text, nl=False)
