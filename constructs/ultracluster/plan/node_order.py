"""The order of HyperPod's nodes and the system stack, and what it risks or costs.

AWS's guide installs charts and add-ons before the cluster. Nodes need neither to join, and take longer: side
by side the first deploy is shorter, and expensive nodes wait where the system stack fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.model import Cluster

MINUTES = 6
"""Minutes that the system stack adds where nodes wait for it: `benchmarks/critical_path.py`, a
model, which a test compares with this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOrder:
    """Describe what nodes cost while the system stack does not come up."""

    after_system: bool
    """Nodes are created after it."""
    nodes: int
    """Facts of HyperPod, in all compute groups."""
    prepaid: int
    """Nodes among them that are paid upfront, in any order."""
    per_hour: float | None
    """USD per hour of all of them; None where one has no price."""

    def words(self, price: str) -> str:
        """The order and its price, in a sentence.

        Args:
            price: `per_hour` in words.
        """
        some = f"{self.nodes:,} node{'s' * (self.nodes != 1)} at {price}"
        if self.prepaid:
            some += " (paid upfront)" if self.prepaid == self.nodes else f" ({self.prepaid:,} paid upfront)"
        one = self.nodes == 1
        side, time, waits = "beside", "sooner", "waits" if one else "wait"
        if self.after_system:
            side, time, waits = "after", "later", "does not wait" if one else "do not wait"
        return (
            f"Nodes are created {side} the system stack, about {MINUTES} minutes {time}: if it fails, {some} "
            f"{waits} for its repair (orchestrator.create_nodes)"
        )


def node_order(cluster: Cluster, costs: Mapping[str, tuple[bool, float | None]]) -> NodeOrder | None:
    """The order of an environment; None where HyperPod creates no nodes for Kubernetes.

    Args:
        cluster: what the environment comes to.
        costs: of each group of nodes, whether it is paid upfront, and USD per hour.
    """
    if not isinstance(cluster.settings, HyperPodEks):
        return None
    groups = cluster.with_role("compute").items()
    counts = {name: group.settings.count for name, group in groups if group.settings.count and name in costs}
    if not counts:
        return None
    prices = [costs[name][1] for name in counts]
    return NodeOrder(
        after_system=cluster.settings.create_nodes == "after-system",
        nodes=sum(counts.values()),
        prepaid=sum(count for name, count in counts.items() if costs[name][0]),
        per_hour=None if None in prices else round(sum(price for price in prices if price is not None), 6),
    )


__all__ = ["MINUTES", "NodeOrder", "node_order"]
