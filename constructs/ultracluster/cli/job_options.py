"""Options of `ultracluster job write` and `ultracluster job submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

TeamOption = Annotated[
    str | None, typer.Option(help="Team of the job; required if the environment has teams.")
]
ImageOption = Annotated[
    str | None,
    typer.Option(help="Container image with PyTorch, libfabric and NCCL's EFA plugin; optional on Slurm."),
]
ScriptOption = Annotated[
    str | None, typer.Option(help="What the job starts; train.py on the Lustre file system by default.")
]
NameOption = Annotated[str, typer.Option(help="Job name.")]
GroupOption = Annotated[str | None, typer.Option(help="Node group; the first with accelerators by default.")]
PriorityOption = Annotated[Literal["low", "normal", "high"], typer.Option(help="Job priority.")]
WithinOption = Annotated[
    Literal["layer-1", "layer-2", "layer-3", "ultraserver"] | None,
    typer.Option(help="Do not start unless all nodes share this level of the network."),
]
ProcessesOption = Annotated[
    int | None, typer.Option(min=1, help="On a node; one for each GPU or logical NeuronCore by default.")
]
TimeOption = Annotated[
    str | None,
    typer.Option(help="Time limit on Slurm, e.g. `2-00:00:00`; the partition's by default."),
]
CheckpointsOption = Annotated[
    str | None,
    typer.Option(help="Folder of checkpoints, on Slurm; checkpoints/NAME on Lustre by default."),
]
LookOption = Annotated[
    bool,
    typer.Option("--look/--no-look", help="On Slurm: look at the nodes before the job starts on them."),
]
SchedulerOption = Annotated[
    Literal["kueue", "volcano", "kai"] | None,
    typer.Option(help="As if the environment had this scheduler; its own by default."),
]
ResilienceOption = Annotated[
    Literal["restart", "checkpointless", "elastic"] | None,
    typer.Option(
        help="A job of HyperPod's training operator: restart processes, recover in them, or go on with fewer "
        "and more nodes."
    ),
]
SparesOption = Annotated[
    int, typer.Option(min=0, help="With --resilience: nodes that are kept for the job, and wait.")
]
MostNodesOption = Annotated[
    int | None,
    typer.Option(min=1, help="With --resilience elastic: nodes at the most. --nodes is the least."),
]
StepOption = Annotated[
    int, typer.Option(min=1, help="With --resilience elastic: by how many nodes it grows and shrinks.")
]
SizesOption = Annotated[
    str | None,
    typer.Option(help="With --resilience elastic, in place of --step: numbers of nodes, e.g. `2,4,8`."),
]
LogLineOption = Annotated[
    str | None,
    typer.Option(help="With --resilience: regular expression of a line that each step prints."),
]
LogSecondsOption = Annotated[
    int, typer.Option(min=1, help="With --log-line: the job hangs, and is restarted, without it for so long.")
]
CheckpointsToOption = Annotated[
    Literal["memory", "s3"] | None,
    typer.Option(help="On HyperPod EKS: tiered checkpoints, in memory alone or in S3, too."),
]
WorkdirOption = Annotated[
    Path | None,
    typer.Option(
        help="A folder from here in which the job starts: stored by its content, read-only there.",
        show_default=False,
    ),
]
WorkdirLimitOption = Annotated[
    int, typer.Option(min=1, max=5000, metavar="MB", help="With --workdir: megabytes that it may have.")
]


def typed_options(context: typer.Context) -> dict[str, str]:
    """Options of the command line as they are written, by their parameter."""
    return {
        one.name: max(one.opts if context.params.get(one.name) is not False else one.secondary_opts, key=len)
        for one in context.command.params
        if one.name
        and one.param_type_name == "option"
        and one.expose_value
        and getattr(context.get_parameter_source(one.name), "name", "") == "COMMANDLINE"
    }
