"""`ultracluster init`: a first environment file, from questions or flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.draft_words import commands_for, refusal, schema_line
from ultracluster.cli.environments import refuse
from ultracluster.cli.questions import can_ask


def init(
    instance_type: Annotated[
        str | None,
        typer.Option("--instance-type", help="EC2's name of the compute nodes' type.", show_default=False),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", help="Number of compute nodes.", show_default=False)
    ] = None,
    accelerators: Annotated[
        str | None,
        typer.Option(
            "--accelerators",
            help="64xH100, instead of --instance-type and --nodes.",
            show_default=False,
        ),
    ] = None,
    orchestrator: Annotated[
        str | None,
        typer.Option(
            "--orchestrator",
            help="hyperpod-slurm, hyperpod-eks, parallelcluster, pcs or eks; `ultracluster choose` helps.",
            show_default=False,
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", help="AWS Region: us-east-2.", show_default=False)
    ] = None,
    zone_id: Annotated[
        str | None,
        typer.Option(
            "--zone-id", help="Zone: use2-az2; else one known to offer the type.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the environment; `train` by default.")
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity",
            help="on-demand, spot, reservation, capacity-block or training-plan; else what sells the type.",
            show_default=False,
        ),
    ] = None,
    capacity_id: Annotated[
        str,
        typer.Option(
            "--capacity-id", help="Id of the reservation or block, or ARN of the plan.", show_default=False
        ),
    ] = "",
    lustre_tib: Annotated[
        float | None,
        typer.Option(
            "--lustre-tib",
            help="Lustre in TiB, 0 for none; else sized for checkpoints.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", help="AMI of the nodes, for pcs.", show_default=False)
    ] = "",
    admin: Annotated[
        str, typer.Option("--admin", help="ARN of the role that may use Kubernetes.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; standard output by default.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Write it, too, where AWS is not known to sell it.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: take the defaults for what is left out.")
    ] = False,
) -> None:
    """Write a commented environment file, sized for the number of nodes.

    Asks for what no flag says. Without a terminal, pass --orchestrator, --region, and --instance-type with
    --nodes, or --accelerators. What it writes passes `ultracluster validate`, and AWS is known to
    sell it in its Region and zone. Exit code 2: a flag is missing or wrong, the file is there already, or
    what is asked for cannot be had; the nearest that can is named.
    """
    from ultracluster.cli.draft_wishes import Given, wishes_of
    from ultracluster.config import render
    from ultracluster.plan.draft_check import judged
    from ultracluster.plan.draft_place import NoZoneError

    if output is not None and output.exists() and not force:
        refuse(f"{output} exists: pass --force to replace it")
    given = Given(
        instance_type=instance_type, nodes=nodes, accelerators=accelerators, orchestrator=orchestrator,
        region=region, zone_id=zone_id, name=name, capacity=capacity, capacity_id=capacity_id,
        lustre_tib=lustre_tib, image=image, admin=admin,
    )  # fmt: skip
    wishes = wishes_of(given, asks=can_ask() and not yes, why="--yes" if yes else "")
    try:
        found = judged(wishes, commands_for(output, wishes.name), output)
    except NoZoneError as error:
        refuse(refusal(wishes, [str(error)]))
    if found.wrong or (found.unsold and not anyway):
        refuse(refusal(wishes, (*found.wrong, *found.unsold)))
    text = schema_line(output) + found.text
    if output is None:
        sys.stdout.write(text)
    else:
        _write(text, output, force)
        typer.echo(f"{output} is written", err=True)
    if found.findings:
        typer.echo(render(found.findings), err=True)


def _write(text: str, output: Path, force: bool) -> None:
    """Never over a file that came up while questions were asked."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        refuse(f"{output} exists: pass --force to replace it")
    except OSError as error:
        refuse(f"{output} cannot be written: {error.strerror}")
