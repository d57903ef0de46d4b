"""Nodes as Kubernetes registers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.account.kubernetes_api import is_node
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.evidence import Expected, Registered

EFA = "vpc.amazonaws.com/efa"
"""The resource of the EFA device plugin."""


def registered(
    node: Node,
    expected: Expected,
    items: list[dict[str, Any]],
    *,
    claimed: Mapping[str, int] | None = None,
) -> Registered:
    """Return whether Kubernetes places pods on a node that ask for all it has.

    Args:
        node: ours.
        expected: what it has.
        items: the nodes that Kubernetes knows.
        claimed: EFA interfaces that pods can claim, by node; None where they are counted.
    """
    item = next((item for item in items if is_node(item, node)), None)
    if item is None:
        return Registered(False, "Kubernetes does not know it")
    status: dict[str, Any] = item.get("status", {})
    conditions: list[dict[str, Any]] = status.get("conditions", [])
    ready = next(
        (condition for condition in conditions if condition.get("type") == "Ready"), dict[str, Any]()
    )
    if ready.get("status") != "True":
        return Registered(False, f"Kubernetes calls it not Ready: {ready.get('message') or 'no word of it'}")
    offered: dict[str, str] = status.get("allocatable", {})
    counted = [(expected.resource, expected.per_node)]
    if claimed is None:
        counted.insert(0, (EFA, expected.efa))
    elif (there := claimed.get(str(item.get("metadata", {}).get("name", "")), 0)) < expected.efa:
        return Registered(False, f"the EFA DRA driver lists {there} of {expected.efa} interfaces")
    for resource, wanted in counted:
        there = offered.get(resource, "0")
        if resource and wanted and there.isdigit() and int(there) < wanted:
            return Registered(False, f"its device plugin offers {there} of {wanted} {resource}")
    return Registered(True)
