"""From what stands on the command line to an environment.

`accounts` opens its account, and `accepted` judges it by the rules: both take longer to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ultracluster.cli.json_output import JsonOption
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import hand_over
from ultracluster.config import Environment, Finding, InvalidEnvironmentError, load, render
from ultracluster.config.loader import Loaded
from ultracluster.project.place import find_root

__all__ = [
    "EnvironmentArgument",
    "JsonOption",
    "ProfileOption",
    "check_new_file",
    "complete_environment",
    "confirm",
    "environment_path",
    "load_environment",
    "load_file",
    "refuse",
    "refuse_file",
]


def complete_environment(incomplete: str) -> list[str]:
    """What a shell offers for an environment: names in environments/, environment files, and folders."""
    names = sorted(file.stem for file in Path("environments").glob("*.yaml"))
    folder, _, start = incomplete.rpartition("/")
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    try:
        below = sorted(one for one in place.iterdir() if one.name.startswith(start))
    except OSError:
        below = []
    prefix = incomplete.removesuffix(start)
    files = [f"{prefix}{one.name}" for one in below if one.suffix in {".yaml", ".yml"}]
    folders = [f"{prefix}{one.name}/" for one in below if one.is_dir() and not one.name.startswith(".")]
    return [*(name for name in names if name.startswith(incomplete)), *files, *folders]


EnvironmentArgument = Annotated[
    Path,
    typer.Argument(
        help="An environment file, or the name of one in environments/.",
        show_default=False,
        autocompletion=complete_environment,
    ),
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", help="AWS profile; AWS_PROFILE by default.", show_default=False)
]


def load_file(path: Path) -> Loaded:
    """An environment file by its path, or by its name in environments/.

    Raises:
        InvalidEnvironmentError: it cannot be read, or is not an environment.
    """
    return load(environment_path(path))


def environment_path(path: Path) -> Path:
    """Where the environment file lies of this path, or of this name in the project's environments/."""
    if path.suffix in {".yaml", ".yml"}:
        return path
    named = Path("environments") / f"{path}.yaml"
    if not named.is_file() and (root := find_root()):
        above = root / named
        named = above if above.is_file() else named
    return named if named.is_file() or not path.exists() else path  # a folder may be called like it


def load_environment(path: Path) -> Environment:
    """The environment of a file; otherwise all findings on standard error, and exit code 2."""
    try:
        return load_file(path).environment
    except InvalidEnvironmentError as error:
        refuse_file(error.findings)


def check_new_file(file: Path) -> None:
    """Before anything is asked: an environment file can be written there, and none is replaced."""
    try:
        if file.exists() or file.is_symlink():
            refuse(f"{file} exists: name another file{'' if file.is_dir() else ', or delete it'}")
        above = next((one for one in file.absolute().parents if one.exists()), None)
    except OSError as error:
        refuse(f"--write {file}: {error.strerror}")
    if above is not None and not above.is_dir():
        refuse(f"--write {file}: {above} is no folder")
    if file.suffix not in {".yaml", ".yml"}:
        refuse(f"--write {file}: the name of an environment file ends in .yaml")


def refuse_file(findings: Sequence[Finding]) -> NoReturn:
    """All findings of a file, and exit code 2."""
    refuse(render(findings), findings)


def confirm(question: str, yes: bool) -> None:
    """Ask on standard error, unless `yes`; anything but a yes ends with exit code 2."""
    if yes:
        return
    hand_over()
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        typer.echo("", err=True)
    refuse("Not confirmed: nothing changed. Pass --yes to confirm.")
