"""Keys that `--json` prints of a data class: rows of documents come from the classes themselves.

A row of `ROWS` lists keys in their order:

    key            the attribute of this name
    key=a.b        another attribute, or an attribute or answer of an attribute
    key=name?      null where it is empty
    key=name%4     rounded to this many digits
    key=name:str   published as this type, where the class is narrower or a date
    -name          all public fields and properties without these (such a row has no other words)

A class without a row has all its public fields and properties. `tools/json_schemas.py` reads the same rows
and takes types and descriptions from the class. Light: every command imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from ultracluster.account.doctor.known_failures import KnownFailure
    from ultracluster.catalog.images import Image
    from ultracluster.catalog.node_faults import Fault
    from ultracluster.change.changes import Change

ROWS = {
    "acceptance.report:Curve": "run nodes ranks average_busbw=average rows",
    "acceptance.report:Check": "id outcome:str message run place",
    "acceptance.report:Report": "verdict reason instance_type nodes ranks nics versions checks curves pairs",
    "acceptance.runs:Figures": "time_us:float|None algbw:float|None busbw:float|None wrong:int|None",
    "acceptance.runs:Row": "size out_of_place in_place",
    "acceptance.slow_node:Comparison": (
        "median_busbw=median:float|None limits slow_nodes slow slow_paths not_judged=unjudged pairs"
    ),
    "acceptance.slow_node:Pair": "nodes:list[str] size busbw distance",
    "acceptance.slow_node:Suspect": "nodes busbw others_busbw=others outcome",
    "account.nodes.node:Node": "-name",
    "account.nodes.node:Outcome": "-bad",
    "jobs.placement.seats:Seat": "name path ultraserver",
    "jobs.queue.protocol:QueuedJob": (
        "id name user team state detail why nodes wanted_nodes submitted started ended "
        "exit_code restarts log?"
    ),
    "account.quotas.requests:Request": (
        "service code quota=name current asked state:str status? why? id? when"
    ),
    "account.sessions:Session": "target document command",
    "account.spending:Spent": "service usage usd%2",
    "account.team_differences:TeamDifference": "what name change=kind details",
    "account.wait.look:GroupSeen": "name wanted ready=up note? failed? nodes",
    "account.wait.look:NodeSeen": "id state:str why? degraded gone",
    "account.wait.smoke:Smoke": "group verdict:str reason command? nodes logs? report",
    "catalog.images:Advisory": "text by:str source=origin",
    "catalog.images:Fact": "value mark:str source=origin as_of note",
    "catalog.images:Image": "id family:str release date os arch:str kubernetes name notes advisories",
    "catalog.prices:Figure": "usd%8 per=unit:str region? source date verified live",
    "cli.json_rows:JudgedChange": (
        "stack=change.stack logical_id=change.logical_id type=change.resource_type path=change.path "
        "verdict=change.verdict refused=change.refused order=change.order replaces=change.replaces accepted "
        "reason=change.reason source=change.source before=change.before after=change.after"
    ),
    "cli.json_rows:Cause": (
        "id=failure.id cause=failure.cause certain=failure.certain differs=failure.differs do=failure.do "
        "run=failure.run page=failure.page sources=failure.sources evidence"
    ),
    "cli.json_rows:Harmless": "id=fault.id meaning=fault.meaning times",
    "cli.json_rows:KnownImage": (
        "id=image.id family=image.family:str release=image.release date=image.date os=image.os "
        "arch=image.arch:str kubernetes=image.kubernetes name=image.name notes=image.notes "
        "advisories=image.advisories values=image.values"
    ),
    "config.findings:Finding": (
        "code severity path=dotted message instead remedy=remedy.as_json file=location.file "
        "line=location.line column=location.column acknowledged?"
    ),
    "imports.ledger:Row": "outcome where why todo",
    "moving.parts:Part": "what becomes:str how least_hours%4",
    "moving.steps:Step": "what why? commands back gate downtime deletes",
    "plan.cost:Committed": "group by price=figure? on_demand?",
    "plan.cost:Line": (
        "area=item.area:str what=item.what purchase=item.purchase quantity=item.quantity "
        "at_most=item.greatest unit=item.unit mark?:str days_old upfront=prepaid note=item.note? "
        "price=figure cost"
    ),
    "plan.environment_plan:Plan": "-asked_as -traits",
    "plan.type_choice:TypePrice": (
        "usd_per_hour=usd%6 by region=figure.region source=figure.source date=figure.date"
    ),
    "plan.type_choice:TypeRow": (
        "instance_type accelerator accelerators memory_gib nodes pflops%3 efa_gbps prices "
        "usd_per_pflops_hour=usd_per_pflops%4 nodes_usd_per_hour=nodes_usd%4 obtainable"
    ),
    "plan.usage:Usage": "environment place by:str since until hours%4 rows total notes",
    "plan.usage:UsageRow": (
        "kind:str name? job_name? user? team? jobs starts node_hours%4 accelerator_hours%4 usd%2 "
        "not_priced_node_hours%4"
    ),
    "jobs.placement.spread:Layer": "layer=name switches=spans best",
    "software.solver:Verdict": (
        "id=constraint.id state:str severity=constraint.severity:str title=constraint.title detail "
        "why=constraint.why source=constraint.source date=constraint.date"
    ),
    "supply.online:Answer": "component what state:str detail",
}
"""By module, below `ultracluster`, and class."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A known failure that fits."""

    failure: KnownFailure
    evidence: list[str]
    """Where it was seen."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """A fault that asks nothing of a node, such as an application's error."""

    fault: Fault
    times: int
    """Lines that have it."""


@dataclass(frozen=True, slots=True)
class JudgedChange:
    """One changed property of one resource, or the resource as a whole."""

    change: Change
    accepted: bool
    """Its data may be lost, or lose a guard: --accept."""


@dataclass(frozen=True, slots=True)
class KnownImage:
    """An image with its values."""

    image: Image


class Key(NamedTuple):
    """A key of a row."""

    name: str
    path: tuple[str, ...]
    """Attributes, each of the one before."""
    empty_is_null: bool = False
    digits: int | None = None
    type: str = ""
    """Published instead of the attribute's own; empty for that."""

    def value(self, instance: object) -> Any:
        """The value of an instance as it is printed."""
        found: Any = instance
        for name in self.path:
            found = getattr(found, name) if found is not None else None
        if callable(found):
            found = found()
        if self.digits is not None and found is not None:
            return round(found, self.digits)
        return None if self.empty_is_null and not found else plain(found)


def plain(value: Any) -> Any:
    """A value as JSON types, dates excepted."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key.name: key.value(value) for key in keys_of(type(value))}
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    return value


@cache
def keys_of(kind: type) -> tuple[Key, ...]:
    """Keys of a data class, in their order."""
    words = ROWS.get(f"{kind.__module__.removeprefix('ultracluster.')}:{kind.__name__}", "").split()
    if words and not words[0].startswith("-"):
        return tuple(map(_key, words))
    dropped = {word.removeprefix("-") for word in words}
    return tuple(Key(name, (name,)) for name in _public(kind) if name not in dropped)


def _key(word: str) -> Key:
    found = re.fullmatch(
        r"(?P<name>\w+)(=(?P<path>[\w.]+))?(?P<null>\?)?(%(?P<digits>\d))?(:(?P<type>.+))?", word
    )
    assert found, word
    digits = found["digits"]
    path = tuple((found["path"] or found["name"]).split("."))
    return Key(found["name"], path, bool(found["null"]), int(digits) if digits else None, found["type"] or "")


def _public(kind: type) -> Iterator[str]:
    properties = (name for name, member in vars(kind).items() if isinstance(member, property))
    names = [*(field.name for field in fields(kind)), *properties]
    return (name for name in names if not name.startswith("_"))
