"""Moving an environment to another zone, Region or capacity: a plan, and the second environment.

target = target_of("use2-az1", loaded.environment)
move = plan_move(loaded, target)
move.steps, move.parts, move.text    # order, what becomes of what, the second environment's file
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from ultracluster.config import Environment, Finding, InvalidEnvironmentError, parse
from ultracluster.config.base_files import EXTENDS_FROM, Folders
from ultracluster.config.file_edit import EditError, edited, inherited
from ultracluster.config.loader import Loaded
from ultracluster.config.plain_text import one_line
from ultracluster.config.remedy import Change, Option, apply
from ultracluster.config.source import Source
from ultracluster.model import Cluster, resolve
from ultracluster.moving.parts import ORDER, Both, Part, hours_text, parts
from ultracluster.moving.second import (
    Edit,
    capacity_of,
    edits,
    local_zone_edits,
    option_of,
    second_name,
    takers,
)
from ultracluster.moving.steps import Step, Words, steps
from ultracluster.moving.target import (
    Bought,
    MoveError,
    Target,
    capacity_named,
    checked,
    main_type,
    target_of,
)
from ultracluster.plan.cost import Estimate, estimate
from ultracluster.plan.price_file import prices_of, read_prices
from ultracluster.rules import check

__all__ = [
    "ORDER",
    "Both",
    "Bought",
    "Edit",
    "Move",
    "MoveError",
    "Part",
    "Step",
    "Target",
    "capacity_named",
    "capacity_of",
    "checked",
    "hours_text",
    "main_type",
    "plan_move",
    "target_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move as it is planned."""

    both: Both
    target: Target
    edits: tuple[Edit, ...]
    text: str
    """The second environment's file."""
    file: Path
    """Where it belongs."""
    findings: tuple[Finding, ...]
    """What the rules say of the second environment."""
    problems: tuple[str, ...]
    """Why the target cannot be had as it is asked for."""
    parts: tuple[Part, ...]
    steps: tuple[Step, ...]
    cost: tuple[Estimate, Estimate]
    days: int
    """In which both are paid."""

    @property
    def blanks(self) -> tuple[Edit, ...]:
        """Return what a person has to fill in."""
        return tuple(edit for edit in self.edits if edit.blank)

    @property
    def taken(self) -> tuple[str, ...]:
        """The groups whose capacity the account holds already."""
        return tuple(
            takers(self.both.first.environment, self.target.bought)[:1] if self.target.bought else ()
        )

    @property
    def wrong(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def least_hours(self) -> float | None:
        """Copying all that is copied, at once; None: nothing of it is known."""
        return max((part.least_hours for part in self.parts if part.least_hours), default=None)

    @property
    def usd_together(self) -> float | None:
        """Both for the days in which both are paid, without upfront fees; None: nothing has a price."""
        hourly = [one for one in map(hourly_usd, self.cost) if one is not None]
        return sum(hourly) * 24 * self.days if hourly else None


def hourly_usd(found: Estimate) -> float | None:
    """USD per hour of what is paid by the hour; fees of plans and blocks are paid once, whenever they end."""
    hourly = [line.per_hour for line in found.standing if not line.prepaid and line.per_hour is not None]
    return sum(hourly) if hourly else None


def plan_move(
    loaded: Loaded,
    target: Target,
    *,
    name: str = "",
    file: Path | None = None,
    days: int = 3,
    today: dt.date | None = None,
) -> Move:
    """The plan of a move.

    Args:
        name: of the second environment; by default that of the first with the new zone.
        file: where it is written; by default beside the first.
        days: in which both are paid.

    Raises:
        MoveError: there is no such move, or the file cannot be changed by a program.
    """
    first = loaded.environment
    name = name or second_name(first, target)
    if name == first.name:
        raise MoveError(f"the second environment is called like the first, {name}: give it another --name")
    place = file or first.file.with_name(f"{name}.yaml")
    problems = tuple(_problems(loaded, target))
    found = edits(first, loaded.source.data, target, name)
    second, findings = _second(loaded, option_of(found), place)
    if more := tuple(local_zone_edits(second.environment, findings)):
        found = (*found, *more)
        second, findings = _second(loaded, option_of(found), place)
    text = _text(loaded, place, found, target)
    both = Both(first=resolve(first), second=second)
    what = parts(both)
    return Move(
        both=both,
        target=target,
        edits=found,
        text=text,
        file=place,
        findings=findings,
        problems=problems,
        parts=what,
        steps=steps(both, what, Words.of(both, target, place, named=name != second_name(first, target))),
        cost=(_cost(both.first, today), _cost(both.second, today)),
        days=days,
    )


def _problems(loaded: Loaded, target: Target) -> list[str]:
    bought, first = target.bought, loaded.environment
    if bought is None:
        return []
    groups = takers(first, bought)
    if not groups:
        types = ", ".join(dict.fromkeys(group.instance_type for group in first.node_groups.values()))
        raise MoveError(
            f"{bought.id} has {bought.instance_type}, and {first.name} has {types}: no group takes it"
        )
    if bought.zone_id == first.network.zone_id:
        raise MoveError(
            f"{bought.id} is in {bought.zone_id}, where {first.name} is: nothing has to move. Name it in "
            f"node_groups.{groups[0]}.capacity, and ask `ultracluster diff` what that does"
        )
    most = max(first.node_groups[groups[0]].count, first.node_groups[groups[0]].max_count or 0)
    found: list[str] = []
    if bought.count < most:
        found.append(f"{bought.id} holds {bought.count} x {bought.instance_type}, and {groups[0]} has {most}")
    if bought.ends and bought.ends <= dt.datetime.now(dt.UTC):
        found.append(f"{bought.id} ended on {bought.ends:%Y-%m-%d %H:%M} UTC")
    return found


def _text(loaded: Loaded, place: Path, found: tuple[Edit, ...], target: Target) -> str:
    first = loaded.environment.file
    try:
        text = first.read_text(encoding="utf-8")
    except OSError as error:
        raise MoveError(f"{first} cannot be read again: {error.strerror}") from None
    option = inherited(text, option_of(found))
    notes = {one.path: f"stands in for {one.blank}" for one in found if one.blank}
    own: Any = cast("Any", YAML(typ="safe")).load(text)
    paths = (*_bases(own, first, place), *_paths(loaded.source.data, loaded.environment, place))
    try:
        changed = edited(text, (*option, *paths), notes)
    except EditError as error:
        raise MoveError(f"{first}: {error}") from None
    schema, rest = _schema(changed)
    head = [
        (
            f"# Moved from {one_line(first.name)} to {target.zone_id} by `ultracluster move`: both stay "
            "deployable until the second has"
        ),
        "# passed acceptance. Lines that stand in for a value of yours say so.",
    ]
    return "\n".join([*schema, *head, rest])


def _schema(text: str) -> tuple[list[str], str]:
    """The line that editors look for stays the first."""
    first, _, rest = text.partition("\n")
    return ([first], rest) if first.startswith("# yaml-language-server:") else ([], text)


def _paths(data: Any, first: Environment, place: Path) -> Option:
    """Paths that the environment names, which are read from its own folder, for the second file's folder.

    What a base names is read from the folder of the file that extends it, so it is said there as well.
    """
    old, new = first.file.parent.resolve(), place.parent.resolve()
    if old == new:
        return ()
    changes = [
        Change((key,), _from(old, new, data[key])) for key in ("prices", "lifecycle_steps") if data.get(key)
    ]
    prices = prices_of(first)
    if not data.get("prices") and prices.is_file():  # the one next to the file, which it need not name
        changes.append(Change(("prices",), _from(old, new, prices.name)))
    software: Any = data.get("software") or {}
    release = software.get("release")
    if isinstance(release, str) and "/" in release:
        changes.append(Change(("software", "release"), _from(old, new, release)))
    return tuple(changes)


def _bases(own: Any, first: Path, place: Path) -> Option:
    """The files that the file extends, for the second file's folder.

    Raises:
        MoveError: a file of that folder may not extend them.
    """
    old, new = first.parent.resolve(), place.parent.resolve()
    if old == new or not own.get("extends"):
        return ()
    moved = _from(old, new, own["extends"])
    folders = Folders.of(place)
    bases = cast("list[Any]", moved if isinstance(moved, list) else [moved])
    for base in bases:
        if refused := folders.refuse(place.parent / str(base)):
            raise MoveError(
                f"{place} would extend {base}, which {refused.why}: write it into {first.parent}, where "
                f"{first.name} is, or set {EXTENDS_FROM} to that folder"
            )
    return (Change(("extends",), moved),)


def _from(old: Path, new: Path, value: Any) -> Any:
    if isinstance(value, list):
        return [_from(old, new, one) for one in cast("list[Any]", value)]
    return Path(os.path.relpath(old / value, new)).as_posix() if isinstance(value, str) else value


def _second(loaded: Loaded, option: Option, place: Path) -> tuple[Cluster, tuple[Finding, ...]]:
    data = apply(loaded.source.data, option)
    data = apply(data, _paths(data, loaded.environment, place))
    try:
        second = parse(Source(str(place), data=data))
    except InvalidEnvironmentError as error:
        reasons = "; ".join(f"{finding.dotted}: {finding.message}" for finding in error.findings)
        raise MoveError(f"the second environment would be none: {reasons}") from None
    second = Loaded(second.environment.at(place), second.source)
    return resolve(second.environment), tuple(check(second))


def _cost(cluster: Cluster, today: dt.date | None) -> Estimate:
    on = today or dt.date.today()
    given = read_prices(prices_of(cluster.environment), today=on)
    return estimate(cluster, today=on, own=given.figures, faults=list(given.faults))
