"""An estimate in a few figures and sentences, which `plan`, `cost` and the picture share, and as JSON."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ultracluster.catalog.prices import HOURS_PER_MONTH, YOUNG
from ultracluster.model import Cluster
from ultracluster.plan.cost import Estimate, Idle, estimate, periods
from ultracluster.plan.cost_parts import CostPart, cost_parts
from ultracluster.plan.node_order import NodeOrder
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
    order: NodeOrder | None
    """Describe what the order of HyperPod's nodes and the system stack costs; None elsewhere."""
    faults: tuple[str, ...]
    """Why prices of a file could not be used."""
    parts: tuple[CostPart, ...] = ()
    """Each node group and each area of the rest, the dearest first."""

    @property
    def text(self) -> str:
        """`about 19,400 USD/month, 26.6 USD/h (estimate; only 33 USD have a current price); 8 of 10 ...`."""
        if self.per_hour is None or self.per_month is None:
            return f"unknown: none of the {self.things} billed items has a price"
        text = f"{self._about}, {rough(self.per_hour)} USD/h{self._lacks} (estimate; {self._current})"
        if self.most_per_month is not None:
            text += f", up to {rough(self.most_per_month)} USD/month with all nodes that may be added"
        if marked := self.priced - self.strict:
            of = f"{marked} of {self.priced} price{'s' * (self.priced != 1)}"
            text += f"; {of} {'is' if marked == 1 else 'are'} {_list(self.marks, 'or')}"
        others = [name for name in self.not_priced if name not in self.nodes_not_priced]
        return f"{text}; not priced: {_list(others, 'and')}" if others else text

    @property
    def _current(self) -> str:
        if self.strict == self.things:
            return "every price is current"
        if self.strict_per_month is None:
            return "no price is current"
        return f"only {rough(self.strict_per_month)} USD have a current price"

    @property
    def short(self) -> str:
        """`about 19,400 USD/month`, and what it lacks where nodes have no price."""
        if self.per_month is None:
            return "cost unknown"
        return f"{self._about}{self._lacks}"

    @property
    def _about(self) -> str:
        return f"about {rough(self.per_month or 0)} USD/month"

    @property
    def _lacks(self) -> str:
        groups = self.nodes_not_priced
        return f" WITHOUT the nodes of {_list(groups, 'and')}" if groups else ""

    @property
    def strict_line(self) -> str:
        """How much of it rests on current prices, in words."""
        what = f"current prices (this Region, last {YOUNG.days} days): {self.strict} of {self.things}"
        return what if self.strict_per_month is None else f"{what}, {rough(self.strict_per_month)} USD/month"

    @property
    def idle_line(self) -> str:
        """What a failed node costs, in words; empty where there is no compute node."""
        burn = self.idle
        if burn is None:
            return ""
        fails = f"If one {burn.instance_type} in group {burn.group} fails"
        if burn.node_per_hour is None:
            return f"{fails}: its cost is unknown (not priced)"
        upfront = ", paid upfront" if burn.prepaid else ""
        text = f"{fails}: about {rough(burn.node_per_hour)} USD/h wasted (estimate{upfront})"
        if burn.job_nodes > 1 and burn.job_per_hour is not None:
            text += f"; {rough(burn.job_per_hour)} USD/h while a job on {burn.job_nodes:,} nodes waits for it"
        return text

    @property
    def order_line(self) -> str:
        """Return what the order of nodes and system stack costs, in words; empty where there is none."""
        if self.order is None:
            return ""
        usd = self.order.per_hour
        return self.order.words("an unknown cost" if usd is None else f"about {rough(usd)} USD/h")

    def document(self) -> dict[str, Any]:
        """The figures and words for machines."""
        names = ("text", "short", "strict_line", "idle_line", "order_line")
        words = {name: getattr(self, name) for name in names}
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
        order=found.order,
        faults=found.faults,
        parts=cost_parts(found),
    )


def cost_plan(cluster: Cluster, today: dt.date | None, prices: PriceFile | None = None) -> CostPlan:
    """What an environment costs with the prices of a day (None is the current one) and of a team's file."""
    own, faults = (prices.figures, prices.faults) if prices else ({}, [])
    return summary(estimate(cluster, today=today, own=own, faults=faults))


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


def document(found: Estimate) -> dict[str, Any]:
    """The estimate for machines. Sums are USD; `null` is unknown."""
    idle = found.idle
    return {
        "environment": found.environment,
        "orchestrator": found.orchestrator,
        "region": found.region,
        "date": str(found.today),
        "currency": "USD",
        "hours_per_month": HOURS_PER_MONTH,
        "summary": summary(found).document(),
        "estimate": periods(found.per_hour),
        "at_most": periods(found.most_per_hour),
        "strict": periods(found.strict_per_hour),
        "complete": found.complete,
        "not_priced": [line.item.what for line in found.not_priced],
        "days": found.days,
        "upfront": _rounded(found.upfront),
        "by_use": [line.item.what for line in found.by_use],
        "faults": list(found.faults),
        "lines": found.lines,
        "committed_one_year": found.committed,
        "savings_plans": found.savings_plans,
        "idle": {
            "group": idle.group,
            "instance_type": idle.instance_type,
            "prepaid": idle.prepaid,
            "mark": idle.mark or None,
            "node": periods(idle.node_per_hour),
            "job_groups": list(idle.job_groups),
            "job_nodes": idle.job_nodes,
            "job": periods(idle.job_per_hour),
        }
        if idle
        else None,
    }


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
