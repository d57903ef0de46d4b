"""From the name of an environment to its file in the project here, checked and of a version that fits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.environments import ProfileOption, complete_environment
from ultracluster.cli.progress import working
from ultracluster.cli.report import refuse
from ultracluster.config import InvalidEnvironmentError, load, render
from ultracluster.project.place import Located, ProjectError, located
from ultracluster.project.synth import synth_into
from ultracluster.project.versions import misfits
from ultracluster.rules import enforce, judge_rest

EnvironmentName = Annotated[
    str,
    typer.Argument(
        metavar="ENVIRONMENT",
        help="The name of an environment in environments/, or its file.",
        show_default=False,
        autocompletion=complete_environment,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
__all__ = ["EnvironmentName", "ProfileOption", "YesOption", "assembled", "opened"]


def opened(name: str, *, deploys: bool = False) -> Located:
    """An environment of the project here that breaks no rule; otherwise what is wrong, and exit code 2.

    Args:
        deploys: refuse, too, where another version of this package runs than the project pins.
    """
    try:
        here = located(name)
        found = misfits(here.root)
    except InvalidEnvironmentError as error:
        refuse(render(judge_rest(error)))
    except ProjectError as error:
        refuse(str(error))
    for one in found:
        if one.stops == "everything" or (deploys and one.stops == "deploy"):
            refuse(one.text)
        typer.echo(one.text, err=True)
    _obeyed(here.file)
    return here


def _obeyed(file: Path) -> None:
    try:
        enforce(load(file))
    except InvalidEnvironmentError as error:
        refuse(str(error))


def assembled(here: Located, out: Path) -> None:
    """Write the templates to a folder; what the app says goes to standard error."""
    try:
        with working(f"synthesising {here.name} ..."):
            said = synth_into(here.root, here.file, out)
    except ProjectError as error:
        refuse(str(error))
    if said:
        typer.echo(said, err=True)
