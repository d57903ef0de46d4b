"""Options of `ultracluster job pytorch` and `ultracluster job submit`."""

from __future__ import annotations

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
    str | None, typer.Option(help="What torchrun starts; train.py on the Lustre file system by default.")
]
NameOption = Annotated[str, typer.Option(help="Of the job.")]
GroupOption = Annotated[str | None, typer.Option(help="Node group; the first with accelerators by default.")]
PriorityOption = Annotated[Literal["low", "normal", "high"], typer.Option(help="Of the job.")]
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
