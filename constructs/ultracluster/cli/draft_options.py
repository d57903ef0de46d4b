"""Options of the commands that draft an environment: `init` and `new`."""

from __future__ import annotations

from typing import Annotated

import typer

TypeOption = Annotated[
    str | None,
    typer.Option("--instance-type", help="EC2's name of the compute nodes' type.", show_default=False),
]
NodesOption = Annotated[
    int | None, typer.Option("--nodes", help="Number of compute nodes.", show_default=False)
]
AcceleratorsOption = Annotated[
    str | None,
    typer.Option(
        "--accelerators",
        help="64xH100, instead of --instance-type and --nodes.",
        show_default=False,
    ),
]
OrchestratorOption = Annotated[
    str | None,
    typer.Option(
        "--orchestrator",
        help="hyperpod-slurm, hyperpod-eks, parallelcluster, pcs or eks; `ultracluster choose` helps.",
        show_default=False,
    ),
]
RegionOption = Annotated[
    str | None, typer.Option("--region", help="AWS Region: us-east-2.", show_default=False)
]
ZoneOption = Annotated[
    str | None,
    typer.Option("--zone-id", help="Zone: use2-az2; else one known to offer the type.", show_default=False),
]
CapacityOption = Annotated[
    str | None,
    typer.Option(
        "--capacity",
        help="on-demand, spot, reservation, capacity-block or training-plan; else what sells the type.",
        show_default=False,
    ),
]
CapacityIdOption = Annotated[
    str,
    typer.Option(
        "--capacity-id", help="Id of the reservation or block, or ARN of the plan.", show_default=False
    ),
]
LustreOption = Annotated[
    float | None,
    typer.Option(
        "--lustre-tib",
        help="Lustre in TiB, 0 for none; else sized for checkpoints.",
        show_default=False,
    ),
]
ImageOption = Annotated[str, typer.Option("--image", help="AMI of the nodes, for pcs.", show_default=False)]
AdminOption = Annotated[
    str, typer.Option("--admin", help="ARN of the role that may use Kubernetes.", show_default=False)
]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Write it, too, where AWS is not known to sell it.")
]
