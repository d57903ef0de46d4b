"""What `ultracluster init` says around a draft: its schema, what to run next, why it was refused."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.plan.draft import Commands
from ultracluster.plan.draft_check import UNSOLD, nearest
from ultracluster.project.place import SCHEMA, find_root

if TYPE_CHECKING:
    from ultracluster.config import Finding
    from ultracluster.plan.draft import Wishes

_SCHEMA = Path(__file__).parents[1] / "config" / "environment.schema.json"


def schema_line(output: Path | None) -> str:
    """Where editors find the schema; nothing where the file lies in no project that has it."""
    schema = None if output is None else _schema_of(output.resolve())
    if output is None or schema is None:
        return ""
    place = os.path.relpath(schema, output.resolve().parent)
    return f"# yaml-language-server: $schema={Path(place).as_posix()}\n"


def _schema_of(output: Path) -> Path | None:
    """The checkout's schema, or that of a team's own repository."""
    root = _project()
    if root and output.is_relative_to(root):
        return _SCHEMA
    own = find_root(output.parent)
    return own / SCHEMA if own and (own / SCHEMA).is_file() else None


def commands_for(output: Path | None, name: str) -> Commands:
    """What plans the file and what asks the account for it: by make where the Makefile knows the file.

    Without a file: where it is to be saved, in the project or in the folder of the command.
    """
    checkout = _project()
    here = Path.cwd().resolve()
    root = checkout if checkout and here.is_relative_to(checkout) else find_root(here)
    saved_as = ""
    if output is None:
        saved_as = f"environments/{name}.yaml" if root else f"{name}.yaml"
        output = root / saved_as if root else Path(saved_as)
    file = shlex.quote(str(output))
    home = output.resolve().parent
    if output.suffix == ".yaml" and home.name == "environments" and home.parent in (checkout, root):
        file = shlex.quote(output.stem)
        if home.parent == checkout:
            plan, preflight = f"make plan ENV={file}", f"make preflight ENV={file}"
            return Commands(plan=plan, preflight=preflight, saved_as=saved_as)
    return Commands(
        plan=f"ultracluster plan {file}", preflight=f"ultracluster preflight {file}", saved_as=saved_as
    )


INIT = ("ultracluster", "init")


def refusal(wishes: Wishes, reasons: Iterable[Finding | str], start: Sequence[str] = INIT) -> str:
    """Why no file is written, and commands for the nearest that would be; `start` are their first words."""
    reasons = list(reasons)
    lines = [
        "Nothing was written: the environment would be rejected:",
        *(f"  {_line(one)}" for one in reasons),
    ]
    if near := nearest(wishes):
        lines += ["nearest that works:", *(f"  {command(one, start)}" for one in near)]
    if all(not isinstance(one, str) and one.code in UNSOLD and not one.blocks for one in reasons):
        lines.append("--anyway writes it regardless, if you know better")
    return "\n".join(lines)


def command(wishes: Wishes, start: Sequence[str] = INIT) -> str:
    """The command that drafts just this."""
    named = wishes if start == INIT else replace(wishes, name="train")  # others have no flag for the name
    return shlex.join([*start, *flags(named)])


def flags(wishes: Wishes) -> Iterator[str]:
    """The flags of `ultracluster init` that say what the wishes say."""
    yield from ("--instance-type", wishes.instance_type, "--nodes", str(wishes.nodes))
    yield from ("--orchestrator", wishes.orchestrator, "--region", wishes.region)
    for flag, value in (
        ("--zone-id", wishes.zone_id), ("--capacity", wishes.capacity), ("--capacity-id", wishes.capacity_id),
        ("--image", wishes.image), ("--admin", wishes.admin),
        ("--name", "" if wishes.name == "train" else wishes.name),
    ):  # fmt: skip
        if value:
            yield from (flag, value)
    if wishes.lustre_tib is not None:
        yield from ("--lustre-tib", f"{wishes.lustre_tib:g}")


def _line(reason: Finding | str) -> str:
    if isinstance(reason, str):
        return reason
    instead = f"; instead: {reason.instead}" if reason.instead else ""
    return f"{reason.code} {reason.dotted}: {reason.message}{instead}"


def _project() -> Path | None:
    """The checkout that this code runs from; None where it is installed."""
    root = _SCHEMA.resolve().parents[3]
    return root if (root / "Makefile").is_file() and (root / "cdk.json").is_file() else None
