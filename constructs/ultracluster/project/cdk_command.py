"""The CDK's command line, which deploys what was synthesised: found on this machine, or fetched by npx."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ultracluster.config.file_text import text_of
from ultracluster.nodejs import npx
from ultracluster.project.place import ProjectError

Version = tuple[int, ...]


def pinned_cdk() -> str:
    """The version of the CDK's command for this package, by its package.json, which the wheel has, too."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "package.json", package.parents[1] / "package.json")
    file = next(candidate for candidate in candidates if candidate.is_file())
    return json.loads(file.read_text(encoding="utf-8"))["dependencies"]["aws-cdk"]


def cdk_command(root: Path, environment: Mapping[str, str]) -> list[str]:
    """The words that start the CDK's command: the project's own, that of the PATH, or npx.

    One that is older than the pinned version, or of another major version, is passed over.

    Args:
        root: the project.
        environment: variables of the process, with Node.js on the PATH.

    Raises:
        ProjectError: there is none; the text says what installs it.
    """
    wanted = pinned_cdk()
    for program, version in _installed(root, environment):
        if version is None or _works(version, _version(wanted)):
            return [program]
    if starter := npx(environment):
        return [*starter, "--yes", f"aws-cdk@{wanted}"]
    raise ProjectError(
        f"The CDK's command {wanted} is not here, nor is npx, which fetches it: "
        "pip install 'ultracluster[cli]' brings npx. "
        f"With an npm of your own: npm install --save-dev --save-exact aws-cdk@{wanted}"
    )


def _installed(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Version | None]]:
    """Programs called cdk with their versions; None where a version cannot be told."""
    for folder in (root, *root.parents):
        program = folder / "node_modules" / ".bin" / "cdk"
        if program.exists():
            yield str(program), _version_of(program)
    if found := shutil.which("cdk", path=environment.get("PATH", "")):
        yield found, _version_of(Path(found))


def _version_of(program: Path) -> Version | None:
    """By the package.json of the npm package that the program belongs to."""
    for folder in program.resolve().parents[:2]:
        try:
            package: Any = json.loads(text_of(folder / "package.json"))
            if package["name"] == "aws-cdk":
                return _version(package["version"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None


def _works(version: Version, wanted: Version) -> bool:
    return version[0] == wanted[0] and version >= wanted


def _version(text: str) -> Version:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
