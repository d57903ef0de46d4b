"""An estimate by its parts: each node group, and each area of everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ultracluster.catalog.prices import HOURS_PER_MONTH
from ultracluster.plan.billed_item import Area
from ultracluster.plan.cost import Estimate, Line


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart:
    """A part of an estimate; USD a month, list prices. None is unknown, never 0."""

    name: str
    """`train`, `storage`, or `other parts of nodes`."""
    area: Area
    group: str
    """The node group whose instances these are; empty for everything else."""
    per_month: float | None
    """Of what has a price."""
    most_per_month: float | None
    """With all nodes that may be added; None where none may, or nothing has a price."""
    strict_per_month: float | None
    """Of the things' own prices in this Region of the last 90 days."""
    things: int
    """What is billed."""
    not_priced: tuple[str, ...]
    """What of it has no price."""


def cost_parts(found: Estimate) -> tuple[CostPart, ...]:
    """The parts, the dearest first; what is billed by use is in none."""
    lines: dict[tuple[Area, str], list[Line]] = {}
    for line in found.lines:
        if line.mark != "by use":
            lines.setdefault((line.item.area, line.item.group), []).append(line)
    parts = [_part(area, group, ones) for (area, group), ones in lines.items()]
    return tuple(sorted(parts, key=lambda part: -(part.most_per_month or part.per_month or 0)))


def _part(area: Area, group: str, lines: Sequence[Line]) -> CostPart:
    now = _month(line.per_hour for line in lines)
    most = _month(line.most_per_hour for line in lines)
    return CostPart(
        name=group or ("other parts of nodes" if area == "nodes" else area),
        area=area,
        group=group,
        per_month=now,
        most_per_month=most if most != now else None,
        strict_per_month=_month(line.per_hour for line in lines if not line.mark),
        things=len(lines),
        not_priced=tuple(
            dict.fromkeys(line.item.what.rpartition(": ")[2] for line in lines if line.figure is None)
        ),
    )


def _month(hours: Iterator[float | None]) -> float | None:
    known = [hour for hour in hours if hour is not None]
    return round(sum(known) * HOURS_PER_MONTH, 2) if known else None
