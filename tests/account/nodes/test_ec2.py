"""Instances that are ours: only in legal states, and a refusal is a row."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import account, answer, refusal
from nodes_support import node_id, other

from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes.node import Node
from ultracluster.model import resolve


@pytest.mark.parametrize(
    ("action", "kind", "changes", "result", "why"),
    [
        ("replace", "parallelcluster", {"controller": True}, "refused", "is the head node"),
        ("reboot", "parallelcluster", {"controller": True}, "would", ""),
        ("replace", "eks", {"status": "shutting-down"}, "already", "is shutting-down"),
        ("replace", "eks", {"status": "pending"}, "already", "being started"),
        ("reboot", "pcs", {"status": "stopped"}, "refused", "replace it instead"),
        ("replace", "pcs", {"status": "stopped"}, "would", ""),
        ("replace", "pcs", {"status": "hibernated"}, "refused", "this release does not know"),
        ("delete", "pcs", {}, "refused", "change `count` in the environment file"),
        ("health-check", "eks", {}, "refused", "AcceleratedHardwareReady"),
        ("health-check", "pcs", {}, "refused", "dcgmi diag"),
    ],
)
def test_instances_in_legal_states_only(
    action: Any, kind: str, changes: dict[str, Any], result: str, why: str
) -> None:
    node = Node(**{"id": node_id(16), "group": "gpu", "status": "running", **changes})
    outcome = ec2_nodes.judge(action, resolve(other(kind)), [node])[0]
    assert outcome.result == result and why in outcome.why


def test_a_refused_instance_is_a_row() -> None:
    aws_account = account()

    def refuse(asked: dict[str, Any]) -> dict[str, Any]:
        raise refusal("UnauthorizedOperation", "You are not authorized to perform this operation.")

    answer(aws_account.client("ec2", once=True), "TerminateInstances", refuse)
    outcome = ec2_nodes.act(aws_account, "replace", [Node(node_id(16), "gpu", "running")])[0]
    assert outcome.result == "failed" and "access denied: TerminateInstances" in outcome.why
