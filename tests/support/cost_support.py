"""What tests of costs have in common: estimates of shipped environments with changes, on one day."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.catalog.prices import Figure
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.plan.cost import Estimate, Line, estimate

TODAY = dt.date(2026, 11, 21)


def environment(base: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(base), changes or {})).environment


def estimated(base: str, changes: dict[str, Any] | None = None, **options: Any) -> Estimate:
    today: dt.date = options.pop("today", TODAY)
    return estimate(resolve(environment(base, changes)), today=today, **options)


def line(found: Estimate, what: str) -> Line:
    (only,) = [one for one in found.lines if one.item.what.startswith(what)]
    return only


def made_up(key: str, usd: float, **changes: Any) -> Figure:
    figure = Figure(
        key=key, region="us-west-2", usd=usd, unit="hour", source="this test", date=TODAY, verified=True,
        live=True,
    )  # fmt: skip
    return replace(figure, **changes)


def own(*figures: Figure) -> dict[tuple[str, str], Figure]:
    return {(one.key, one.region): one for one in figures}
