"""The headline of an estimate: what `plan`, `cost`, Markdown and the picture say of an environment's cost."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ultracluster.catalog.prices import HOURS_PER_MONTH, YOUNG
from ultracluster.config import Environment
from ultracluster.plan.cost import Estimate, estimate
from ultracluster.plan.cost_idle import Idle
from ultracluster.plan.price_file import PriceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """An estimate in a few figures; USD, list prices. None is unknown, never 0."""

    per_hour: float | None
    per_month: float | None
    most_per_month: float | None
    """With all nodes that may be added; None where none may, or nothing has a price."""
    strict_per_month: float | None
    """Of the things' own prices in this Region of the last 90 days."""
    things: int
    """What is billed, but for what use decides."""
    priced: int
    """How many of them have a price."""
    strict: int
    """How many have one that the strict sum takes."""
    marks: tuple[str, ...]
    """What the other prices are: `derived`, `undated`, `older than 90 days`, `of another Region`."""
    not_priced: tuple[str, ...]
    nodes_not_priced: tuple[str, ...]
    """Node groups whose instances are among those."""
    idle: Idle | None
    """What an idle or failed node costs."""
    faults: tuple[str, ...]
    """Why prices of a file could not be used."""

    @property
    def text(self) -> str:
        """`about 19,400 USD a month (26.6 an hour); 8 of 10 prices are derived or older than 90 days ...`."""
        if self.per_hour is None or self.per_month is None:
            return f"unknown: none of the {self.things} things that it is billed for has a price"
        text = f"{self.short} ({rough(self.per_hour)} an hour)"
        if self.most_per_month is not None:
            text += f", up to {rough(self.most_per_month)} with all nodes that may be added"
        if marked := self.priced - self.strict:
            of = f"{marked} of {self.priced} price{'s' * (self.priced != 1)}"
            text += f"; {of} {'is' if marked == 1 else 'are'} {_list(self.marks, 'or')}"
        others = [name for name in self.not_priced if name not in self.nodes_not_priced]
        return f"{text}; not priced: {_list(others, 'and')}" if others else text

    @property
    def short(self) -> str:
        """`about 19,400 USD a month`, and what it lacks where nodes have no price."""
        if self.per_month is None:
            return "cost unknown"
        lacks = (
            f" WITHOUT the nodes of {_list(self.nodes_not_priced, 'and')}" if self.nodes_not_priced else ""
        )
        return f"about {rough(self.per_month)} USD a month{lacks}"

    @property
    def strict_line(self) -> str:
        """The strict sum in words."""
        what = f"own prices of the last {YOUNG.days} days in this Region"
        if self.strict_per_month is None:
            return f"strictly unknown: 0 of {self.things} things have {what}"
        sums = f"strictly {rough(self.strict_per_month)} USD a month"
        return f"{sums}: {self.strict} of {self.things} things have {what}"

    @property
    def idle_line(self) -> str:
        """What an idle or failed node costs, in words; empty where there is no compute node."""
        burn = self.idle
        if burn is None:
            return ""
        node = f"one idle or failed {burn.instance_type} of {burn.group}"
        if burn.node_per_hour is None:
            return f"{node}: not priced"
        text = f"{node} costs about {rough(burn.node_per_hour)} USD an hour"
        if burn.job_nodes > 1 and burn.job_per_hour is not None:
            text += f"; a job of {burn.job_nodes:,} nodes that waits for it: {rough(burn.job_per_hour)}"
        return f"{text}, paid upfront" if burn.prepaid else text

    def document(self) -> dict[str, Any]:
        """The figures and words for machines."""
        words = {name: getattr(self, name) for name in ("text", "short", "strict_line", "idle_line")}
        return {**asdict(self), **words}


def summary(found: Estimate) -> CostPlan:
    """The headline of an estimate."""
    hour = found.per_hour
    return CostPlan(
        per_hour=None if hour is None else round(hour, 6),
        per_month=_month(hour),
        most_per_month=_month(found.most_per_hour) if found.grows and hour is not None else None,
        strict_per_month=_month(found.strict_per_hour),
        things=len(found.standing),
        priced=len(found.priced),
        strict=len(found.strict),
        marks=tuple(name for mark, name in _MARKS.items() if any(line.mark == mark for line in found.priced)),
        not_priced=tuple(dict.fromkeys(_names(found))),
        nodes_not_priced=tuple(line.item.group for line in found.not_priced if line.item.group),
        idle=found.idle,
        faults=found.faults,
    )


def cost_plan(environment: Environment, today: dt.date | None, prices: PriceFile | None = None) -> CostPlan:
    """What an environment costs with the prices of a day (None is the current one) and of a team's file."""
    own, faults = (prices.figures, prices.faults) if prices else ({}, [])
    return summary(estimate(environment, today=today, own=own, faults=faults))


def rough(usd: float) -> str:
    """USD in three digits, as an estimate deserves: `19,400`, `26.6`, `0.045`."""
    if not usd:
        return "0"
    digits = 2 - math.floor(math.log10(abs(usd)))
    shown = round(usd, digits)
    return f"{shown:,.{max(0, min(digits, 4))}f}"


_MARKS = {
    "derived": "derived",
    "undated": "undated",
    "old": f"older than {YOUNG.days} days",
    "elsewhere": "of another Region",
}


def _names(found: Estimate) -> Iterator[str]:
    """`train` for nodes, `second volumes` for those of all groups."""
    for line in found.not_priced:
        yield line.item.group or line.item.what.rpartition(": ")[2]


def _month(per_hour: float | None) -> float | None:
    return None if per_hour is None else round(per_hour * HOURS_PER_MONTH, 2)


def _list(names: tuple[str, ...] | list[str], word: str) -> str:
    *some, last = names
    return f"{', '.join(some)} {word} {last}" if some else last
