"""`ultracluster new`: a team's own repository, from which environments are deployed without a checkout."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from ultracluster.cli.draft_wishes import Given, completed_given, wishes_of
from ultracluster.cli.draft_words import refusal
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark
from ultracluster.config import render
from ultracluster.plan.draft import Commands
from ultracluster.plan.draft_check import judged
from ultracluster.plan.draft_place import NoZoneError
from ultracluster.plan.draft_small import small
from ultracluster.project.place import SCHEMA, ProjectError
from ultracluster.project.scaffold import check_free, installed_from, texts, write

if TYPE_CHECKING:
    from ultracluster.plan.draft import Wishes


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that is not there, or empty.", show_default=False)
    ],
    instance_type: TypeOption = None,
    nodes: NodesOption = None,
    accelerators: AcceleratorsOption = None,
    orchestrator: OrchestratorOption = None,
    region: RegionOption = None,
    zone_id: ZoneOption = None,
    capacity: CapacityOption = None,
    capacity_id: CapacityIdOption = "",
    lustre_tib: LustreOption = None,
    image: ImageOption = "",
    admin: AdminOption = "",
    anyway: AnywayOption = False,
) -> None:
    """Make a repository for your own environments: app, environments, tests, CI for GitHub and GitLab.

    The flags are those of `ultracluster init` and describe environments/prod.yaml; dev.yaml is two nodes of
    the smallest type on which the same can be tried. Nothing is asked; what is left out has a default.
    requirements.txt pins this version of Ultracluster as it is installed here. Exit code 2: the folder is not
    empty, or what is asked for cannot be had; nothing is written then.
    """
    given = Given(
        instance_type=instance_type, nodes=nodes, accelerators=accelerators, orchestrator=orchestrator,
        region=region, zone_id=zone_id, name="prod", capacity=capacity, capacity_id=capacity_id,
        lustre_tib=lustre_tib, image=image, admin=admin,
    )  # fmt: skip
    try:
        check_free(folder)
        prod = replace(wishes_of(completed_given(given), asks=False), protect=True)
        environments = {one.name: _drafted(one, folder, anyway) for one in (prod, small(prod, "dev"))}
        source = installed_from()
        write(folder, texts(folder.resolve().name, prod.region, environments, source), source.wheel)
    except ProjectError as error:
        refuse(str(error))
    place = shlex.quote(str(folder))
    remark(f"{folder} is made: its README.md says what is what. Next:")
    for command in (
        f"cd {place}",
        "ultracluster synth dev",
        "pytest --update-snapshots",
        "git init && git add .",
    ):
        remark(f"  {command}")


def _drafted(wishes: Wishes, folder: Path, anyway: bool) -> str:
    """The text of an environment file; otherwise why there can be none, and exit code 2."""
    commands = Commands(
        plan=f"ultracluster plan {wishes.name}", preflight=f"ultracluster preflight {wishes.name}"
    )
    start = ("ultracluster", "new", str(folder))
    try:
        found = judged(wishes, commands, folder / "environments" / f"{wishes.name}.yaml")
    except NoZoneError as error:
        refuse(refusal(wishes, [str(error)], start))
    if found.wrong or (found.unsold and not anyway):
        refuse(refusal(wishes, (*found.wrong, *found.unsold), start))
    if found.findings:
        typer.echo(f"environments/{wishes.name}.yaml:\n{render(found.findings)}", err=True)
    return f"# yaml-language-server: $schema=../{SCHEMA}\n{found.text}"
