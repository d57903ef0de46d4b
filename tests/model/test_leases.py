"""Leases of a cluster, and the documents that tell nodes of them and of teams."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.model.leases import Lease, asked_of, leases
from ultracluster.model.state_documents import state_documents

PLAN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/q1"
BLOCK = "cr-0123456789abcdef0"
AT_PLAN = {"kind": "training-plan", "arn": PLAN}
AT_BLOCK = {"kind": "capacity-block", "id": BLOCK}


def found(base: str, group: str, capacity: dict[str, Any]) -> tuple[Lease, ...]:
    return leases(resolve(environment({f"node_groups.{group}.capacity": capacity}, base=base)))


def test_hyperpod_takes_nodes_of_a_plan_an_hour_before_its_end() -> None:
    (lease,) = found("prod", "train", AT_PLAN)

    assert (lease.kind, lease.id, lease.reclaimed_minutes) == ("training-plan", PLAN, 60)
    assert lease.node_pattern == ""


@pytest.mark.parametrize(
    ("base", "nodes", "others"),
    [
        (
            "parallelcluster-p5",
            ["{p}-st-{g}-1", "{p}-dy-{g}-12"],
            ["{g}-1", "{p}-st-{g}x-1", "x{p}-st-{g}-1"],
        ),
        ("pcs-p6-b200", ["{g}-1", "{g}-64"], ["{g}-x", "{g}2-1"]),
    ],
)
def test_nodes_of_a_block_are_known_by_their_names(base: str, nodes: list[str], others: list[str]) -> None:
    cluster = resolve(environment({}, base=base))
    name, group = next(iter(cluster.with_role("compute").items()))
    (lease,) = (one for one in found(base, name, AT_BLOCK) if one.group == name)

    assert (lease.kind, lease.id, lease.reclaimed_minutes) == ("capacity-block", BLOCK, 30)
    words = {"g": name, "p": group.partition or name}
    assert all(re.fullmatch(lease.node_pattern, one.format(**words)) for one in nodes)
    assert not any(re.fullmatch(lease.node_pattern, one.format(**words)) for one in others)


def test_ultraservers_go_an_hour_before_the_end() -> None:
    found = leases(resolve(environment({}, base="parallelcluster-gb200")))

    assert {one.reclaimed_minutes for one in found} == {60}


def test_nodes_without_our_scripts_ask_for_nothing() -> None:
    capacity = {"node_groups.train.capacity": AT_PLAN}
    assert asked_of(resolve(environment(capacity, base="prod")), "training-plan") == (PLAN,)
    assert asked_of(resolve(environment(capacity, base="prod")), "capacity-block") == ()
    without = capacity | {"orchestrator.lifecycle": "none"}
    assert asked_of(resolve(environment(without, base="prod")), "training-plan") == ()


def test_documents_of_a_cluster() -> None:
    capacity = {"node_groups.train.capacity": AT_PLAN}
    documents = state_documents(resolve(environment(capacity, base="prod")))
    lease, teams = json.loads(documents["lease.json"]), json.loads(documents["teams.json"])

    assert lease["leases"][0]["nodes"] == {"instance_group": "train"}
    assert 0 < lease["stop_minutes"] < lease["signal_minutes"]
    assert (teams["accounts"], teams["qos"], teams["users"], teams["remove"]) == ([], [], [], False)
    assert {one["cluster"] for one in (lease, teams)} == {"prod"}
