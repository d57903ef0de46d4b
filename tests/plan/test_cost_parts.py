"""The parts of an estimate: they come to its sums, and name what has no price."""

from __future__ import annotations

import datetime as dt

import pytest
from project import ENVIRONMENTS
from rules_support import environment_data, loaded

from ultracluster.catalog.prices import HOURS_PER_MONTH
from ultracluster.model import resolve
from ultracluster.plan.cost import Estimate, estimate
from ultracluster.plan.cost_parts import cost_parts

DAY = dt.date(2026, 11, 21)


def found(name: str) -> Estimate:
    return estimate(resolve(loaded(environment_data(name)).environment), today=DAY)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_parts_are_the_whole(name: str) -> None:
    whole = found(name)
    parts = cost_parts(whole)

    assert sum(one.per_month or 0 for one in parts) == pytest.approx(
        (whole.per_hour or 0) * HOURS_PER_MONTH, abs=1
    )
    most = sum(one.most_per_month or one.per_month or 0 for one in parts)
    assert most == pytest.approx((whole.most_per_hour or 0) * HOURS_PER_MONTH, abs=1)
    strict = sum(one.strict_per_month or 0 for one in parts)
    assert strict == pytest.approx((whole.strict_per_hour or 0) * HOURS_PER_MONTH, abs=1)
    assert len({one.name for one in parts}) == len(parts)
    costs = [one.most_per_month or one.per_month or 0 for one in parts]
    assert costs == sorted(costs, reverse=True)


def test_what_has_no_price_is_named_and_never_nothing() -> None:
    unknown = [one for one in cost_parts(found("prod")) if one.per_month is None]

    assert [(one.name, one.not_priced) for one in unknown] == [("other parts of nodes", ("second volumes",))]


def test_nodes_that_may_be_added_are_a_maximum() -> None:
    parts = {one.name: one for one in cost_parts(found("parallelcluster-p5"))}

    assert parts["more"].per_month == 0
    assert (parts["more"].most_per_month or 0) > 100_000
    assert parts["reserved"].most_per_month is None
