"""What an environment costs, as the plan has it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from ultracluster.config import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """The sum of what has a price that holds; USD, list prices."""

    per_hour: float
    per_month: float
    greatest_per_hour: float
    complete: bool
    left_out: tuple[str, ...]
    """What is billed and not in the sum, with the reason."""
    groups_left_out: tuple[str, ...]
    """Node groups whose instances are not in the sum."""

    def __str__(self) -> str:
        lacks = [f"the nodes of {', '.join(self.groups_left_out)}"] if self.groups_left_out else []
        rest = len(self.left_out) - len(self.groups_left_out)
        if rest:
            lacks.append(f"{rest} thing{'s' * (rest > 1)} more")
        if not self.per_hour:
            return f"no price that holds: {' and '.join(lacks)}" if lacks else "nothing"
        most = ""
        if self.greatest_per_hour > self.per_hour:
            most = f" ({self.greatest_per_hour:,.2f} at the most)"
        text = f"{self.per_hour:,.2f} USD an hour{most}, {self.per_month:,.0f} USD a month"
        return f"{text}, WITHOUT {' and '.join(lacks)}" if lacks else text


def cost_plan(environment: Environment, today: dt.date | None) -> CostPlan:
    """What an environment costs with the prices of a day; None is the current one."""
    from ultracluster.operations.cost import estimate, reason

    found = estimate(environment, today=today)
    return CostPlan(
        per_hour=found.per_hour,
        per_month=found.per_month,
        greatest_per_hour=found.greatest_per_hour,
        complete=found.complete,
        left_out=found.left_out,
        groups_left_out=tuple(
            line.item.group
            for line in found.lines
            if line.item.group and line.item.quantity and line.state != "counted" and reason(line)
        ),
    )
