"""Faults of nodes: what a reason such as `ultracluster:xid:79` means and what is done about it.

The table is `lifecycle_scripts/health/faults.json`, which nodes read as well; `docs/faults.md` shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ultracluster.catalog.files import record, table
from ultracluster.scripts_folder import scripts_folder

Severity = Literal["none", "warn", "critical"]
Action = Literal["none", "requeue", "reset", "reboot", "replace"]
ACTIONS: tuple[Action, ...] = ("none", "requeue", "reset", "reboot", "replace")
"""From the mildest on; `none` and `requeue` both leave the node in service."""
REASON_PREFIX = "ultracluster:"
"""With which each reason begins that health checks give a node; `<check>:<code>` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What another maker's list does about a fault."""

    who: str
    action: Action | Literal["drain"]
    """`drain`: it takes the node out and says no more."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What is done instead when a fault of one device comes again."""

    times: int
    within_hours: int
    severity: Severity
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row of the table."""

    id: str
    check: str
    codes: tuple[str, ...]
    """`*` is any code that no other row has."""
    generations: tuple[str, ...] = ()
    """Of accelerators; empty for all."""
    text: str = ""
    """Regular expression of what a line of the kernel says, where rows of one code differ by it."""
    meaning: str
    severity: Severity
    action: Action
    when_idle: Action = "none"
    """Done when no job runs on the node."""
    repeats: Repeats | None = None
    nvidia: str = ""
    """The immediate action of NVIDIA's catalogue; empty where it has none."""
    other: tuple[Opinion, ...] = ()
    note: str = ""
    source: str
    date: str
    line: str = ""
    """A line of the kernel's log with this fault; empty for what checks find."""
    line_from: str = ""
    """Who logged it, or "constructed: ..."."""
    forms: tuple[tuple[str, str], ...] = ()
    """Other ways in which drivers print it, each with where it was logged."""
    near: tuple[str, ...] = ()
    """Lines that look alike and do not come to this row."""
    disk: str = ""
    """Kind of disk that it is for; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Accelerators that report faults alike."""

    name: str
    maker: str
    accelerators: tuple[str, ...]
    """EC2's names of them."""


@cache
def node_faults() -> tuple[Fault, ...]:
    """All rows, in their order: the first that fits counts."""
    return tuple(_fault(row) for row in _document()["faults"])


@cache
def generations() -> tuple[Generation, ...]:
    """All generations of accelerators that the table knows."""
    return tuple(record(Generation, facts, name=name) for name, facts in _document()["generations"].items())


def generations_of(accelerators: Iterable[str]) -> tuple[str, ...]:
    """Names of the generations of such accelerators; nothing for one that the table does not know."""
    names = set(accelerators)
    return tuple(generation.name for generation in generations() if names & set(generation.accelerators))


def about_faults() -> dict[str, str]:
    """What the file says of its fields, its sources and its date."""
    return dict(_document()["about"])


def faults_of_reason(reason: str) -> tuple[Fault, ...]:
    """The rows that a node's reason may stand for; empty for a reason that health checks did not write.

    Several where only the generation or the text of a line tells them apart.
    """
    if not reason.startswith(REASON_PREFIX):
        return ()
    check, _, code = reason.removeprefix(REASON_PREFIX).partition(":")
    words = code.split()
    code = words[0] if words else ""
    rows = [row for row in node_faults() if row.check == check]
    return tuple(row for row in rows if code in row.codes) or tuple(
        row for row in rows if row.codes == ("*",)
    )


def _fault(row: Mapping[str, Any]) -> Fault:
    again = row.get("repeats")
    return record(
        Fault,
        row,
        repeats=record(Repeats, again) if again else None,
        other=table(Opinion, row.get("other", ())),
        forms=tuple((one["line"], one["line_from"]) for one in row.get("forms", ())),
    )


@cache
def _document() -> dict[str, Any]:
    file = scripts_folder() / "health" / "faults.json"
    return json.loads(file.read_text(encoding="utf-8"))
