"""Which version of this package a team's repository is for: who made it, what it pins, and what runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ultracluster.config.file_text import text_of
from ultracluster.project.place import cdk_json
from ultracluster.version import __version__

MADE_BY = "ultracluster:version"
"""In the context of cdk.json: the version whose templates the repository has reviewed; none in a checkout."""
REQUIREMENTS = "requirements.txt"
_PIN = re.compile(
    r"^(?:ultracluster\s*(?:\[[^\]]*\])?\s*==\s*|\S*/ultracluster-)([\w.+!]+)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Two of the versions do not fit."""

    text: str
    stops: str = "nothing"
    """What must not go on: `deploy`, or `everything`."""


def running_version() -> str:
    """Of the package that runs."""
    return __version__


def misfits(root: Path, running: str | None = None) -> list[Misfit]:
    """What does not fit between the versions of a project; nothing for a checkout.

    Raises:
        ProjectError: cdk.json cannot be read.
    """
    running = running or running_version()
    context: Any = cdk_json(root).get("context")
    made_by = cast("dict[str, Any]", context).get(MADE_BY) if isinstance(context, dict) else None
    if not isinstance(made_by, str):
        return []
    return [*_made(made_by, running), *_pinned(root / REQUIREMENTS, running)]


def _made(made_by: str, running: str) -> list[Misfit]:
    here = f'cdk.json says "{MADE_BY}": "{made_by}"'
    if not _numbers(made_by):
        return [Misfit(text=f"{here}, which is no version: write {running} if its templates are reviewed.")]
    if _numbers(made_by) > _numbers(running):
        text = f"{here}, and {running}, which runs, may not know its keys: pip install -r {REQUIREMENTS}"
        return [Misfit(text=text, stops="everything")]
    if _numbers(made_by)[:2] < _numbers(running)[:2]:
        text = (
            f"{here}, and {running} runs: see what that changes with `ultracluster diff ENV --deployed` and "
            f"`pytest`, read its changelog, then write {running} there."
        )
        return [Misfit(text=text)]
    return []


def deployed_by(version: str, name: str, running: str | None = None) -> str:
    """Advise on the version that deployed an environment; empty where it is the one that runs.

    Args:
        version: from its stack; empty where the stack has none.
    """
    running = running or running_version()
    if not version:
        return (
            f"{name} was deployed by a version without a number in its stacks, and {running} runs: what "
            "follows has the changes of both. docs/upgrading.md, Step by step, has the order."
        )
    if _numbers(version) == _numbers(running):
        return ""
    if _numbers(version) > _numbers(running):
        return (
            f"{name} was deployed by ultracluster {version}, newer than {running}, which runs: a deploy "
            f"takes its changes back. Install {version}; docs/upgrading.md, Step by step, has the rollback."
        )
    return (
        f"{name} was deployed by ultracluster {version}, and {running} runs: what follows has the changes of "
        f"both. Of the upgrade alone: `ultracluster diff {name} --against-version WHEEL` with the wheel of "
        f"{version}; docs/upgrading.md, Step by step, has the order."
    )


def _pinned(file: Path, running: str) -> list[Misfit]:
    try:
        found = _PIN.search(text_of(file))
    except (OSError, UnicodeDecodeError):
        return []
    if found is None or _numbers(found[1]) == _numbers(running):
        return []
    return [
        Misfit(
            text=f"{file.name} pins ultracluster {found[1]}, and {running} runs: pip install -r {file.name}, "
            f"or change the pin to {running}. What is deployed must be what others and CI would deploy.",
            stops="deploy",
        )
    ]


def _numbers(version: str) -> tuple[int, ...]:
    """0.2.1 of 0.2.1rc1: what decides whether files and templates fit."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
