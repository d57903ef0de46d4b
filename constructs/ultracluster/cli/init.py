"""`ultracluster init`: a first environment file, from questions or flags."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.draft_options import (
    AcceleratorsOption,
    AdminOption,
    AnywayOption,
    CapacityIdOption,
    CapacityOption,
    ImageOption,
    LustreOption,
    NodesOption,
    OrchestratorOption,
    RegionOption,
    TypeOption,
    ZoneOption,
)
from ultracluster.cli.draft_wishes import Given, wishes_of
from ultracluster.cli.draft_words import commands_for, refusal, schema_line
from ultracluster.cli.environments import refuse
from ultracluster.cli.file_output import write_new
from ultracluster.cli.questions import can_ask
from ultracluster.cli.terminal import remark
from ultracluster.config import render
from ultracluster.config.environment import MOST_OF_NAME, NAME
from ultracluster.plan.draft_check import judged
from ultracluster.plan.draft_place import NoZoneError


def init(
    instance_type: TypeOption = None,
    nodes: NodesOption = None,
    accelerators: AcceleratorsOption = None,
    orchestrator: OrchestratorOption = None,
    region: RegionOption = None,
    zone_id: ZoneOption = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the environment; that of the file by default, else `train`."),
    ] = None,
    capacity: CapacityOption = None,
    capacity_id: CapacityIdOption = "",
    lustre_tib: LustreOption = None,
    image: ImageOption = "",
    admin: AdminOption = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; standard output by default.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    anyway: AnywayOption = False,
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
    if output is not None and output.exists() and not force:
        refuse(f"{output} exists: pass --force to replace it")
    given = Given(
        instance_type=instance_type, nodes=nodes, accelerators=accelerators, orchestrator=orchestrator,
        region=region, zone_id=zone_id, name=name, usual_name=_name_of(output), capacity=capacity,
        capacity_id=capacity_id, lustre_tib=lustre_tib, image=image, admin=admin,
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
        write_new(output, text, force=force)
        remark(f"{output} is written")
    if found.findings:
        typer.echo(render(found.findings), err=True)


def _name_of(output: Path | None) -> str:
    """The file's name, where an environment may have it: two files of one name would be one cluster."""
    stem = output.stem.lower() if output else ""
    return stem if re.fullmatch(NAME, stem) and len(stem) <= MOST_OF_NAME else "train"
