"""The order of HyperPod's nodes and the system stack: its price is printed, and is that of the estimate."""

from __future__ import annotations

from typing import Any

import pytest
from cost_support import estimated, own
from cost_support import made_up as price
from project import ENVIRONMENTS, environments_of

from ultracluster.plan.cost_summary import summary

BASE = "hyperpod-eks-p5"
ON_DEMAND = {"node_groups.train.capacity": {"kind": "on-demand"}}
FEW = {**ON_DEMAND, "node_groups.train.count": 1}


def line(changes: dict[str, Any], **options: Any) -> str:
    return summary(estimated(BASE, changes, **options)).order_line


BESIDE = "Nodes are created beside the system stack, about 6 minutes sooner: if it fails, "
AFTER = "Nodes are created after the system stack, about 6 minutes later: if it fails, "
ASKED = {**ON_DEMAND, "orchestrator.create_nodes": "after-system"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, f"{BESIDE}4 nodes at about 183 USD/h (paid upfront) wait for its repair"),
        (ON_DEMAND, f"{BESIDE}4 nodes at about 264 USD/h wait for its repair"),
        (FEW, f"{BESIDE}1 node at about 66.0 USD/h waits for its repair"),
        (ASKED, f"{AFTER}4 nodes at about 264 USD/h do not wait for its repair"),
    ],
)
def test_the_order_has_its_price(changes: dict[str, Any], text: str) -> None:
    assert line(changes) == f"{text} (orchestrator.create_nodes)"


def test_a_part_that_is_paid_upfront_is_told_apart_and_an_unknown_price_is_unknown() -> None:
    group = {"role": "compute", "instance_type": "p5.48xlarge", "count": 2, "capacity": {"kind": "on-demand"}}
    assert "6 nodes at" in (mixed := line({"node_groups.more": group})) and "(4 paid upfront)" in mixed
    rare = {**group, "instance_type": "p5e.48xlarge"}
    assert "at an unknown cost (4 paid upfront)" in line({"node_groups.more": rare})


def test_a_price_of_the_team_counts() -> None:
    figure = price("hyperpod.p5.48xlarge", 100, region="us-east-2")
    assert "4 nodes at about 400 USD/h" in line(ON_DEMAND, own=own(figure))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_only_hyperpod_with_kubernetes_has_such_an_order(name: str) -> None:
    assert bool(summary(estimated(name)).order_line) is (name in environments_of("hyperpod-eks"))
    assert line({**ON_DEMAND, "node_groups.train.count": 0, "node_groups.train.max_count": 4}) == ""
