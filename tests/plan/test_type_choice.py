"""Instance types for a model: who holds it, what an operation costs, and how the type is had."""

from __future__ import annotations

import datetime as dt
import math

import pytest

from ultracluster.catalog import instance_types, ultraservers
from ultracluster.catalog.accelerator_speeds import accelerator_speed
from ultracluster.model.checkpoints import state_gib
from ultracluster.plan.type_choice import TypeRow, type_rows

TODAY = dt.date(2026, 11, 28)


def rows(parameters: float = 70e9, capacity: str = "") -> dict[str, TypeRow]:
    return {row.instance_type: row for row in type_rows(parameters, capacity, TODAY)}


def test_figures_of_a_type_are_those_of_the_catalogue() -> None:
    row = rows()["p5.48xlarge"]

    assert (row.accelerators, row.accelerator, row.memory_gib) == (8, "H100", 640)
    assert row.nodes == math.ceil(70e9 * 16 / 2**30 / 640) == 2
    assert row.pflops == pytest.approx(8 * 0.989)
    assert row.price and row.price.by == "Capacity Block" and row.price.usd < 55.04
    assert {price.by: price.figure.region for price in row.prices}["on demand"]
    assert row.usd_per_pflops == pytest.approx(row.price.usd / row.pflops)
    assert row.nodes_usd == pytest.approx(2 * row.price.usd)


def test_a_type_that_is_sold_in_ultraservers_has_its_share_of_the_price() -> None:
    row, server = rows()["p6e-gb200.36xlarge"], ultraservers()["u-p6e-gb200x72"]

    assert row.price and row.price.usd == pytest.approx(761.904 / server.instances)
    assert row.obtainable == ("capacity-block", "training-plan")


def test_the_cheapest_operation_is_first_and_what_has_no_price_last() -> None:
    found = [row.usd_per_pflops for row in rows().values()]
    priced = [usd for usd in found if usd is not None]

    assert priced == sorted(priced) and found[: len(priced)] == priced
    assert rows()["trn2u.48xlarge"].price is None, "nobody publishes one: unknown is not 0"


@pytest.mark.parametrize("parameters", [1e9, 8e9, 70e9, 1.8e12])
def test_nodes_hold_the_state_and_one_less_does_not(parameters: float) -> None:
    for row in rows(parameters).values():
        assert row.nodes * row.memory_gib >= state_gib(parameters)
        assert (row.nodes - 1) * row.memory_gib < state_gib(parameters)


def test_larger_models_need_as_many_nodes_or_more_and_fewer_types_fit() -> None:
    small, large = rows(8e9), rows(1e15)
    assert all(small[name].nodes <= row.nodes for name, row in large.items())
    assert large.keys() < small.keys()


def test_one_type_of_each_family_with_efa_and_a_published_peak() -> None:
    families = [instance_types()[name].family for name in rows(1e9)]
    assert len(families) == len(set(families))
    assert {"p4d", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "p6e-gb200", "trn1", "trn2"} <= set(families)
    assert "inf2" not in families, "it has no EFA"
    for name in rows(1e9):
        accelerator = instance_types()[name].accelerator
        assert accelerator and accelerator_speed(accelerator.name)


@pytest.mark.parametrize(
    ("capacity", "absent"), [("on-demand", "p5e.48xlarge"), ("spot", "p6e-gb200.36xlarge")]
)
def test_a_kind_of_capacity_leaves_out_what_is_not_had_by_it(capacity: str, absent: str) -> None:
    found = rows(capacity=capacity)
    assert absent not in found and "p5.48xlarge" in found
    assert all(capacity in row.obtainable for row in found.values())
