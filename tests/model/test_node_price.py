"""A node's price by the hour: the same as `cost` says, and absent where none is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from project import ROOT
from rules_support import environment_data, loaded

from ultracluster.catalog.prices import edition
from ultracluster.model import resolve
from ultracluster.model.node_price import price_key, usd_per_hour
from ultracluster.plan.billed import billed
from ultracluster.plan.cost import estimate

NAMES = sorted(Path(file).stem for file in (ROOT / "environments").glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_estimate_says_of_a_node(name: str) -> None:
    cluster = resolve(loaded(environment_data(name)).environment)
    lines = {line.item.group: line for line in estimate(cluster, today=edition()).lines if line.item.group}
    for group in cluster.groups.values():
        line = lines.get(group.name)
        if line is None:  # a group without nodes is not billed
            continue
        told = usd_per_hour(cluster, group)
        if line.figure is None:
            assert told is None
        else:
            assert told == pytest.approx(line.figure.per_hour * line.item.greatest / group.most_nodes)


def test_what_has_no_price_is_unknown_and_never_0() -> None:
    cluster = resolve(loaded(environment_data("trainium")).environment)
    group = max(cluster.groups.values(), key=lambda one: one.most_nodes)
    odd = dataclasses.replace(
        group, settings=group.settings.model_copy(update={"instance_type": "x99.metal"})
    )
    assert price_key(odd).endswith(".x99.metal")
    assert usd_per_hour(cluster, odd) is None


def test_keys_are_those_of_the_bill() -> None:
    for name in NAMES:
        cluster = resolve(loaded(environment_data(name)).environment)
        keys = {item.group: item.key for item in billed(cluster) if item.group and item.unit == "instance"}
        assert keys == {name: price_key(cluster.groups[name]) for name in keys}
