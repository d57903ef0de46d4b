"""`ultracluster move`: a plan to another zone, Region or capacity. Changes nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    check_new_file,
    load_file,
    refuse,
    refuse_file,
)
from ultracluster.cli.file_output import write_new
from ultracluster.cli.json_output import write_json
from ultracluster.cli.move_text import as_dict, as_markdown, as_text, unsold
from ultracluster.cli.terminal import remark, width
from ultracluster.config import InvalidEnvironmentError, render
from ultracluster.moving import MoveError, Target, capacity_named, checked, plan_move, target_of

if TYPE_CHECKING:
    from ultracluster.config.loader import Loaded
    from ultracluster.moving import Move


def move(
    environment: EnvironmentArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Zone id (use2-az1), Region (us-west-2), or capacity: with the id of a block or "
            "reservation (behind us-west-2/ in another Region), or the ARN of a training plan, which the "
            "account is asked for.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Name of the second environment; else with the zone.", show_default=False
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="Write the second environment to this new file.", show_default=False),
    ] = None,
    overlap_days: Annotated[int, typer.Option(min=1, max=90, help="Days in which both are paid.")] = 3,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Plan a move to another zone, Region or capacity: what is taken along, copied, bought.

    The second environment is made beside the first, which is deleted last, after the second has passed
    acceptance. Only --to capacity: asks the account. Exit code 0 = it can be had, as far as is known; 1 = the
    target is not known to have it, or the second environment would be refused; 2 = bad input.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    if name is not None and not re.fullmatch(r"(?=.{1,30}$)[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        refuse(f"--name {name}: write small letters, digits and single dashes, 30 at the most")
    if write is not None:
        check_new_file(write)
    try:
        loaded = load_file(environment)
        target = _target(to, loaded, profile)
        found = plan_move(loaded, target, name=name or "", file=write, days=overlap_days)
    except InvalidEnvironmentError as error:
        refuse_file(error.findings)
    except MoveError as error:
        refuse(str(error))
    if write is not None:
        _write(found, write)
    if as_json:
        write_json("move", as_dict(found))
    else:
        sys.stdout.write(as_markdown(found) if markdown else as_text(found, width()))
    raise typer.Exit(1 if found.wrong or unsold(found) else 0)


def _target(to: str, loaded: Loaded, profile: str | None) -> Target:
    named = capacity_named(to)
    if named is None:
        return target_of(to, loaded.environment)
    capacity, region = named
    from ultracluster.cli.capacity_owned import owned_capacity  # 0.3 s: the SDK

    bought = owned_capacity(loaded.environment, capacity, region, profile)
    place = Target(region=bought.region, zone_id=bought.zone_id, bought=bought)
    return checked(place, loaded.environment)


def _write(found: Move, file: Path) -> None:
    """Only what could be deployed, and never over a file."""
    if found.wrong:
        text = f"nothing was written: the second environment would be refused\n{render(found.wrong)}"
        refuse(text, found.wrong, code=1)
    write_new(file, found.text, exists=f"name another file{'' if file.is_dir() else ', or delete it'}")
    remark(f"{file} is written")
