"""Where the project is that a command runs in, and its environment files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ultracluster.config import Environment, load
from ultracluster.config.file_text import text_of

SCHEMA = "environment.schema.json"
"""At the root of a team's repository; the first line of an environment file names it for editors."""


class ProjectError(Exception):
    """Something about the project is not as it must be; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """An environment file in a project."""

    name: str
    """What the user calls it."""
    root: Path
    file: Path
    environment: Environment


def located(name: str, *, anywhere: bool = False) -> Located:
    """An environment file by its path, or by its name in the project's environments/.

    Args:
        name: its path or name.
        anywhere: a path needs no project; its own folder is taken for one.

    Raises:
        ProjectError: there is no project here.
        InvalidEnvironmentError: the file cannot be read, or is not an environment.
    """
    file = Path(name)
    alone = anywhere and file.suffix in {".yaml", ".yml"} and find_root() is None
    root = file.resolve().parent if alone else project_root()
    named = root / "environments" / f"{name}.yaml"
    given = file.suffix in {".yaml", ".yml"} or (file.exists() and not named.is_file())
    file = file.resolve() if given else named
    return Located(name=name, root=root, file=file, environment=load(file).environment)


def find_root(start: Path | None = None) -> Path | None:
    """The nearest folder with app.py and cdk.json, here or above; None where there is none."""
    here = start or Path.cwd()
    folders = (here, *here.parents)
    return next(
        (folder for folder in folders if (folder / "app.py").is_file() and (folder / "cdk.json").is_file()),
        None,
    )


def project_root() -> Path:
    """The folder of the project, here or above.

    Raises:
        ProjectError: there is none.
    """
    root = find_root()
    if root is None:
        raise ProjectError(
            f"No project here: {Path.cwd()} and the folders above have no app.py with cdk.json. "
            "`ultracluster new DIR` makes one; run this there, or in a checkout of Ultracluster."
        )
    return root


def cdk_json(root: Path) -> dict[str, Any]:
    """What the project's cdk.json says.

    Raises:
        ProjectError: it is not JSON, or not an object.
    """
    file = root / "cdk.json"
    try:
        found: Any = json.loads(text_of(file))
    except (OSError, ValueError, RecursionError) as error:
        raise ProjectError(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise ProjectError(f"{file} must hold a JSON object")
    return cast("dict[str, Any]", found)
