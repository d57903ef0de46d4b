"""What an environment costs: an estimate of everything that has a price, each marked by its age and origin.

    found = estimate(environment)
    found.per_hour, found.not_priced, found.strict_per_hour

What has no price is named and never 0. The strict sum has only what needs no mark: the thing's own price in
this Region, of the last 90 days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.prices import HOURS_PER_MONTH, Figure, Own, figure
from ultracluster.config import Environment
from ultracluster.plan.billed import billed
from ultracluster.plan.cost_idle import Idle, idle_burn
from ultracluster.plan.cost_line import Line, price_line

__all__ = ["Committed", "Estimate", "Idle", "Line", "estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A group on demand, with a commitment of one year in place of it."""

    group: str
    figure: Figure
    on_demand: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an environment costs. USD, list prices, without tax and discounts; a month has 730 hours."""

    environment: str
    asked_as: str
    """What a command calls it: its name or the path of its file."""
    region: str
    orchestrator: str
    today: dt.date
    days: int | None
    lines: tuple[Line, ...]
    idle: Idle | None
    committed: tuple[Committed, ...]
    faults: tuple[str, ...]
    """Why prices of a file, or of AWS, could not be used."""

    @property
    def standing(self) -> tuple[Line, ...]:
        """What is always there and not billed by use."""
        return tuple(line for line in self.lines if line.item.quantity and line.mark != "by use")

    @property
    def priced(self) -> tuple[Line, ...]:
        """The lines of the estimate."""
        return tuple(line for line in self.standing if line.figure)

    @property
    def strict(self) -> tuple[Line, ...]:
        """The lines of the strict sum."""
        return tuple(line for line in self.standing if not line.mark)

    @property
    def not_priced(self) -> tuple[Line, ...]:
        """The lines without any price."""
        return tuple(line for line in self.standing if not line.figure)

    @property
    def complete(self) -> bool:
        """Whether the strict sum lacks only what is billed by use, and every given price could be used."""
        return len(self.strict) == len(self.standing) and not self.faults

    @property
    def per_hour(self) -> float | None:
        """USD per hour of everything that has a price; None where nothing has. What is paid upfront is in it
        by the hour."""
        return _sum(self.priced, lambda line: line.per_hour)

    @property
    def most_per_hour(self) -> float | None:
        """USD per hour when every group has all the nodes it may have."""
        lines = [line for line in self.lines if line.mark != "by use"]
        return _sum(lines, lambda line: line.most_per_hour)

    @property
    def strict_per_hour(self) -> float | None:
        """USD per hour of the strict lines; None where there is none."""
        return _sum(self.strict, lambda line: line.per_hour)

    @property
    def grows(self) -> bool:
        """Whether a group may have more nodes than it always has."""
        return any(line.item.greatest > line.item.quantity for line in self.lines)

    @property
    def upfront(self) -> float | None:
        """USD of all fees that are paid upfront, for `days`; None where there is none or one is not known."""
        if self.days is None:
            return None
        fees = [line.per_hour for line in self.standing if line.prepaid]
        if not fees or None in fees:
            return None
        return sum(fee for fee in fees if fee is not None) * 24 * self.days

    @property
    def by_use(self) -> tuple[Line, ...]:
        """What is billed by use, and is in no sum."""
        return tuple(line for line in self.lines if line.mark == "by use")

    def document(self) -> dict[str, Any]:
        """The estimate for machines. Sums are USD; `null` is unknown."""
        from ultracluster.plan.cost_summary import summary

        idle = self.idle
        return {
            "environment": self.environment,
            "orchestrator": self.orchestrator,
            "region": self.region,
            "date": str(self.today),
            "currency": "USD",
            "hours_per_month": HOURS_PER_MONTH,
            "summary": summary(self).document(),
            "estimate": _periods(self.per_hour),
            "at_most": _periods(self.most_per_hour),
            "strict": _periods(self.strict_per_hour),
            "complete": self.complete,
            "not_priced": [line.item.what for line in self.not_priced],
            "days": self.days,
            "upfront": _rounded(self.upfront),
            "by_use": [line.item.what for line in self.by_use],
            "faults": list(self.faults),
            "lines": [_line(line) for line in self.lines],
            "committed_one_year": [
                {"group": one.group, "price": _price(one.figure), "on_demand": _price(one.on_demand)}
                for one in self.committed
            ],
            "idle": {
                "group": idle.group,
                "instance_type": idle.instance_type,
                "prepaid": idle.prepaid,
                "mark": idle.mark or None,
                "node": _periods(idle.node_per_hour),
                "job_groups": list(idle.job_groups),
                "job_nodes": idle.job_nodes,
                "job": _periods(idle.job_per_hour),
            }
            if idle
            else None,
        }


def estimate(
    environment: Environment,
    *,
    today: dt.date | None = None,
    days: int | None = None,
    own: Own | None = None,
    faults: Sequence[str] = (),
) -> Estimate:
    """Price an environment.

    Args:
        today: decides how old figures are, and which of several announced ones it is.
        days: length of Capacity Blocks and training plans, which are paid upfront.
        own: figures of the team, or asked of AWS just now, by key and place; they win over the tables.
        faults: why some of them could not be used.
    """
    on = today or dt.date.today()
    lines = tuple(price_line(environment, item, today=on, own=own or {}) for item in billed(environment, on))
    return Estimate(
        environment=environment.name,
        asked_as=environment.asked_as,
        region=environment.region,
        orchestrator=environment.orchestrator.kind,
        today=on,
        days=days,
        lines=lines,
        idle=idle_burn(environment, lines),
        committed=tuple(_committed(environment, lines, on, own)),
        faults=tuple(faults),
    )


def _committed(
    environment: Environment, lines: Sequence[Line], today: dt.date, own: Own | None
) -> list[Committed]:
    found: list[Committed] = []
    for line in lines:
        kind, _, name = line.item.key.partition(".")
        if kind == "ec2" and line.figure and line.item.quantity and line.item.purchase == "on-demand":
            rate = figure(f"reserved-1y.{name}", environment.region, today=today, own=own)
            if rate:
                found.append(Committed(group=line.item.group, figure=rate, on_demand=line.figure))
    return found


def _sum(lines: Sequence[Line], of: Callable[[Line], float | None]) -> float | None:
    sums = [usd for line in lines if (usd := of(line)) is not None]
    return sum(sums) if sums else None


def _line(line: Line) -> dict[str, Any]:
    item = line.item
    return {
        "area": item.area,
        "what": item.what,
        "purchase": item.purchase,
        "quantity": item.quantity,
        "at_most": item.greatest,
        "unit": item.unit,
        "mark": line.mark or None,
        "days_old": line.days_old,
        "upfront": line.prepaid,
        "note": item.note or None,
        "price": _price(line.figure),
        "cost": _periods(line.per_hour),
    }


def _price(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {
        "usd": round(figure.usd, 8),
        "per": figure.unit,
        "region": figure.region or None,
        "source": figure.source,
        "date": str(figure.date) if figure.date else None,
        "verified": figure.verified,
        "live": figure.live,
    }


def _periods(per_hour: float | None) -> dict[str, float | None] | None:
    if per_hour is None:
        return None
    hours = {"hour": 1, "day": 24, "month": HOURS_PER_MONTH}
    return {name: _rounded(per_hour * number) for name, number in hours.items()}


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
