"""Rules on EFA, each broken and mended."""

from __future__ import annotations

import pytest
from recipes import NEW_TYPE, types_with_the_new_one
from rules_support import GB300
from rules_table import Case, found, table_tests, world_tests

from ultracluster.catalog import instance_types, instances
from ultracluster.rules.sets import EFA

TYPE = "node_groups.gpu.instance_type"
SECOND = {
    "role": "compute",
    "instance_type": "p5.48xlarge",
    "count": 2,
    "partition": "gpu",
}
NEW = "p6e-gb300.36xlarge"

TRAIN, LOGIN = "node_groups.train", "node_groups.login"
ENA = {f"{TRAIN}.ena_express": "tcp"}
CASES = [
    Case(
        "EFA013",
        {f"{TRAIN}.instance_type": NEW_TYPE},
        f"{TRAIN}.instance_type",
        "one EFA on each of the cards 1 to 16",
        "48xlarge",
        {f"{TRAIN}.instance_type": "p6-b300.48xlarge"},
        base="pcs-p6-b200",
    ),
    Case(
        "EFA001",
        {TYPE: "g5.2xlarge", "node_groups.gpu.efa_interface": "efa"},
        "node_groups.gpu.efa_interface",
        "g5.2xlarge has no EFA",
        "g5.8xlarge",
        {TYPE: "g5.8xlarge"},
    ),
    Case(
        "EFA001",
        {"node_groups.login.efa_interface": "efa-only"},
        "node_groups.login.efa_interface",
        "m5.xlarge has no EFA",
        "remove efa_interface",
        {"node_groups.login.efa_interface": ...},
    ),
    Case(
        "EFA002",
        {TYPE: "g6e.4xlarge"},
        TYPE,
        "partition `gpu` has 2 nodes",
        "g6e.8xlarge",
        {"node_groups.gpu.count": 1},
    ),
    Case(
        "EFA002",
        {TYPE: "g6e.4xlarge", "node_groups.gpu.count": 1, "node_groups.more": SECOND},
        TYPE,
        "partition `gpu` has 3 nodes",
        "g6e.8xlarge",
        {"node_groups.more.partition": "more"},
    ),
    Case(
        "EFA003",
        {TYPE: "p4d.24xlarge", "node_groups.more": SECOND},
        "node_groups.gpu.partition",
        "cannot exchange EFA traffic",
        "partition: p4d",
        {"node_groups.gpu.partition": "p4d"},
    ),
    Case(
        "EFA003",
        {TYPE: "p4d.24xlarge", "node_groups.more": SECOND},
        "node_groups.gpu.partition",
        "`more` (p5.48xlarge)",
        "partition: p4d",
        {"node_groups.more.instance_type": "p4de.24xlarge"},
    ),
    Case(
        "EFA004",
        {TYPE: "p5en.48xlarge", "node_groups.more": SECOND},
        "node_groups.more.partition",
        "p5en.48xlarge and p5.48xlarge",
        "partition: p5",
        {"node_groups.more.instance_type": "p5en.48xlarge"},
    ),
    Case(
        "EFA005",
        {TYPE: "p6e-gb200.36xlarge"},
        TYPE,
        "does not say how many EFA interfaces",
        "fi_info",
        {TYPE: "p6-b300.48xlarge"},
    ),
    Case(
        "EFA006",
        {"instance_types": {NEW: {**GB300, "efa_interfaces": 18}}},
        f'instance_types."{NEW}".efa_interfaces',
        "18 EFA interfaces on 17 network cards",
        "17",
        {"instance_types": {NEW: {**GB300, "efa_interfaces": 17}}},
    ),
    Case(
        "EFA007",
        {"instance_types": {NEW: {**GB300, "addresses": 16}}},
        f'instance_types."{NEW}".addresses',
        "16 addresses for 17 network cards",
        "17",
        {"instance_types": {NEW: GB300}},
    ),
    Case(
        "EFA008",
        {"node_groups.login.instance_type": "m7i.8xlarge", f"{LOGIN}.ena_express": "tcp"},
        f"{LOGIN}.ena_express",
        "m7i.8xlarge has no ENA Express",
        "m7i.12xlarge",
        {"node_groups.login.instance_type": "m7i.12xlarge"},
        base="pcs-p6-b200",
    ),
    Case(
        "EFA009",
        {**ENA, "node_groups.train.count": 1},
        f"{TRAIN}.ena_express",
        "one node has it",
        "or turn it on for the nodes that it talks to",
        {"node_groups.train.count": 2},
        base="pcs-p6-b200",
    ),
    Case(
        "EFA010",
        {**ENA, "network.zone_id": "use2-xyz1-az1"},
        f"{TRAIN}.ena_express",
        "use2-xyz1-az1 is a Local Zone",
        "remove ena_express",
        {"network.zone_id": "use2-az2"},
        base="pcs-p6-b200",
    ),
    Case(
        "EFA011",
        {f"{TRAIN}.ena_express": "tcp-and-udp"},
        f"{TRAIN}.ena_express",
        "nothing here lowers the MTU",
        "tcp",
        ENA,
        base="pcs-p6-b200",
    ),
    Case(
        "EFA012",
        {
            **ENA,
            f"{LOGIN}.instance_type": "m7i.12xlarge",
            f"{LOGIN}.ena_express": "tcp-and-udp",
        },
        f"{LOGIN}.ena_express",
        "between the two, UDP goes without it",
        "tcp",
        {f"{LOGIN}.ena_express": "tcp"},
        base="pcs-p6-b200",
    ),
]


test_breaks, test_mended, test_advice_works, test_every_rule_is_broken_once = table_tests(EFA, cases=CASES)
test_the_examples_of_a_world_of_their_own = world_tests(EFA)


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a type whose network cards are unknown."""
    types = types_with_the_new_one()
    monkeypatch.setattr(instances, "instance_types", lambda: types)


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
