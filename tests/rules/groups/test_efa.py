"""Rules on EFA, each broken and mended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recipes import catalogue_with_new_type
from rules_support import GB300
from rules_table import cases, found, table_tests, world_tests

from ultracluster.catalog import instance_types
from ultracluster.rules.sets import EFA

TYPE = "node_groups.gpu.instance_type"
SECOND = {
    "role": "compute",
    "instance_type": "p5.48xlarge",
    "count": 2,
    "partition": "gpu",
}
NEW = "p6e-gb300.36xlarge"


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("efa"))
test_the_examples_of_a_world_of_their_own = world_tests(EFA)


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With a type whose network cards are unknown."""
    with catalogue_with_new_type(monkeypatch):
        yield


@pytest.mark.parametrize(
    "name", [one.name for one in instance_types().values() if one.efa_interfaces and one.hyperpod]
)
def test_a_group_of_one_efa_type_is_clean(name: str) -> None:
    for interface in ("efa", "efa-only"):
        assert found(EFA, {TYPE: name, "node_groups.gpu.efa_interface": interface}) == []


def test_a_pair_of_types_is_reported_by_one_rule_only() -> None:
    codes = [one.code for one in found(EFA, {TYPE: "p4d.24xlarge", "node_groups.more": SECOND})]
    assert codes == ["EFA003"]


def test_a_group_without_nodes_or_of_an_unknown_type_is_not_judged() -> None:
    assert found(EFA, {TYPE: "g5.2xlarge", "node_groups.gpu.count": 0}) == []
    assert found(EFA, {TYPE: "p99.metal", "node_groups.gpu.efa_interface": "efa"}) == []


def test_a_declared_type_is_judged_like_any_other() -> None:
    declared = {"instance_types": {NEW: {**GB300, "efa_interfaces": 0}}, TYPE: NEW}
    assert [one.code for one in found(EFA, declared)] == ["EFA002"]
    assert found(EFA, {"instance_types": {NEW: GB300}, TYPE: NEW}) == []
