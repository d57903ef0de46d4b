"""What an environment costs: everything it is billed for, priced with dated figures.

    found = estimate(environment)
    found.per_hour, found.complete, found.left_out

Nothing is guessed. A figure past its date, or without one, is shown and not summed; HyperPod is never priced
with EC2's figures; what has no figure is unknown, and the total says that it lacks it.
`found.orientation` stands apart: an order of magnitude from every figure there is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ultracluster.catalog.prices import HOURS_PER_MONTH, Figure
from ultracluster.config import Environment
from ultracluster.operations.billed import billed
from ultracluster.operations.cost_idle import Idle, idle_burn
from ultracluster.operations.cost_line import Line, price_line, reason

__all__ = ["Estimate", "Idle", "Line", "Orientation", "estimate", "reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """An order of magnitude: what is summed, and beside it what is not, at undated, expired and derived
    figures and those of other Regions. What is paid upfront is in it by the hour."""

    parts: Mapping[str, float]
    """USD per hour by what the figures are: `counted`, `upfront`, `expired`, `indicative`, `derived` (from
    another thing's price) or `elsewhere` (of another Region)."""
    missing: tuple[str, ...]
    """What has no figure at all."""

    @property
    def per_hour(self) -> float:
        """USD per hour."""
        return sum(self.parts.values())

    @property
    def per_month(self) -> float:
        """USD per month of 730 hours."""
        return self.per_hour * HOURS_PER_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an environment costs. USD, list prices, without tax and discounts."""

    environment: str
    region: str
    orchestrator: str
    today: dt.date
    days: int | None
    accept_expired: bool
    lines: tuple[Line, ...]
    idle: Idle | None
    faults: tuple[str, ...]
    """Why prices could not be asked of AWS."""

    @property
    def counted(self) -> tuple[Line, ...]:
        """The lines that are summed."""
        return tuple(line for line in self.lines if line.state == "counted")

    @property
    def per_hour(self) -> float:
        """USD per hour, of the lines that are counted."""
        return sum(line.per_hour or 0 for line in self.counted)

    @property
    def per_day(self) -> float:
        """USD per day."""
        return self.per_hour * 24

    @property
    def per_month(self) -> float:
        """USD per month of 730 hours."""
        return self.per_hour * HOURS_PER_MONTH

    @property
    def greatest_per_hour(self) -> float:
        """USD per hour at the most, when every group has all the nodes it may have."""
        return sum(line.greatest_per_hour or 0 for line in self.counted)

    @property
    def grows(self) -> bool:
        """Whether a group may have more nodes than it always has."""
        return any(line.item.greatest > line.item.quantity for line in self.lines)

    @property
    def upfront(self) -> float | None:
        """USD of all fees that are paid upfront, for `days`; None where there is none or one is not known."""
        fees = [line.fee for line in self.lines if line.state == "upfront" and line.item.quantity]
        return sum(fee for fee in fees if fee is not None) if fees and None not in fees else None

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is billed and in neither sum, each with the reason."""
        return self._left_out(lambda line: line.item.quantity > 0)

    @property
    def greatest_left_out(self) -> tuple[str, ...]:
        """What more is left out of the sum at the most."""
        return self._left_out(lambda line: not line.item.quantity)

    def _left_out(self, wanted: Callable[[Line], bool]) -> tuple[str, ...]:
        return tuple(
            f"{line.item.what} ({reason(line)})"
            for line in self.lines
            if wanted(line) and reason(line) and line.state != "by use"
        )

    @property
    def by_use(self) -> tuple[str, ...]:
        """What is billed by use, and is in no sum."""
        return tuple(line.item.what for line in self.lines if line.state == "by use")

    @property
    def complete(self) -> bool:
        """Whether the sums have everything but what is billed by use."""
        return not self.left_out

    @property
    def expired_accepted(self) -> tuple[Line, ...]:
        """Lines that are summed although their figure has expired."""
        return tuple(
            line
            for line in self.lines
            if line.state in ("counted", "upfront") and line.figure and line.figure.expired
        )

    @property
    def unverified(self) -> tuple[Line, ...]:
        """Lines whose figure, summed, rests on one source."""
        return tuple(
            line
            for line in self.lines
            if line.state in ("counted", "upfront") and line.figure and not line.figure.verified
        )

    @property
    def orientation(self) -> Orientation:
        """Everything at the nearest figure there is, whatever its age and place. Never part of the sums."""
        always = [line for line in self.lines if line.item.quantity and line.state != "by use"]
        parts: dict[str, float] = {}
        for line in always:
            if line.about_per_hour is not None:
                kind = line.state if line.basis == "own" else line.basis
                parts[kind] = parts.get(kind, 0) + line.about_per_hour
        return Orientation(
            parts=MappingProxyType(parts),
            missing=tuple(line.item.what for line in always if line.about_per_hour is None),
        )


def estimate(
    environment: Environment,
    *,
    today: dt.date | None = None,
    days: int | None = None,
    accept_expired: bool = False,
    live: Mapping[str, Figure] | None = None,
    faults: Sequence[str] = (),
) -> Estimate:
    """Price an environment.

    Args:
        today: decides which figures have expired.
        days: length of Capacity Blocks and training plans, which are paid upfront.
        accept_expired: sum figures past their date, too. Those without a date are never summed.
        live: figures asked of AWS just now, by key; they win over the table.
        faults: why some could not be asked.
    """
    on = today or dt.date.today()
    lines = tuple(
        price_line(environment, item, today=on, days=days, accept_expired=accept_expired, live=live or {})
        for item in billed(environment)
    )
    return Estimate(
        environment=environment.name,
        region=environment.region,
        orchestrator=environment.orchestrator.kind,
        today=on,
        days=days,
        accept_expired=accept_expired,
        lines=lines,
        idle=idle_burn(environment, lines),
        faults=tuple(faults),
    )
