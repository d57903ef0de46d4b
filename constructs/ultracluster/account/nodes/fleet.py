"""The nodes of one environment, wherever they are: which route each orchestrator's nodes take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultracluster.account.aws import Account
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes import hyperpod_checks, hyperpod_requests
from ultracluster.account.nodes.hyperpod import LiveCluster
from ultracluster.account.nodes.node import Action, Node, Outcome, entrance, find
from ultracluster.account.services.parallelcluster import LOGIN
from ultracluster.model import Cluster


class Fleet:
    """The nodes as they are now.

    Attributes:
        wanted: the cluster as its file has it.
        cluster: the HyperPod cluster; none where nodes are instances of the account.
        nodes: every node, by group and id.
    """

    def __init__(self, account: Account, wanted: Cluster) -> None:
        """Read the nodes.

        Raises:
            AccountError: they cannot be read.
        """
        self.account = account
        self.wanted = wanted
        self.cluster: LiveCluster | None = None
        if wanted.traits.hyperpod:
            self.cluster = hyperpod_nodes.read_cluster(account, wanted.cluster_name)
            controllers = set(wanted.with_role("controller"))
            self.nodes = hyperpod_nodes.list_nodes(account, self.cluster, controllers)
        else:
            self.nodes = ec2_nodes.list_nodes(account, wanted)

    def entrance(self) -> Node | None:
        """Return where people log in by default."""
        return entrance(self.nodes, {*self.wanted.with_role("login"), LOGIN})

    def find(self, names: Sequence[str]) -> tuple[list[Node], list[str]]:
        """The nodes that are meant, and the names that fit none."""
        return find(self.nodes, names)

    def absent(self, name: str) -> Outcome:
        """Return what to say of a name that fits no node."""
        if self.cluster:
            return hyperpod_nodes.absent(self.account, self.cluster, name, self.nodes)
        return ec2_nodes.absent(self.account, name, self.nodes)

    def describe(self, node: Node) -> dict[str, Any]:
        """Everything that AWS tells of one node.

        Raises:
            AccountError: it cannot be read.
        """
        if self.cluster:
            return hyperpod_nodes.describe_node(self.account, self.cluster, node)
        return ec2_nodes.describe_node(self.account, node)

    def judge(self, action: Action, nodes: Sequence[Node], checks: Sequence[str] = ()) -> list[Outcome]:
        """Return what may be asked now, one outcome for each node and in their order.

        Args:
            checks: deep health checks, for that action.
        """
        if self.cluster and action == "health-check":
            return hyperpod_checks.judge(self.wanted, self.cluster, nodes, checks)
        if self.cluster:
            return hyperpod_nodes.judge(action, self.cluster, nodes)
        return ec2_nodes.judge(action, self.wanted, nodes)

    def act(self, action: Action, nodes: Sequence[Node], checks: Sequence[str] = ()) -> list[Outcome]:
        """Ask AWS for nodes that `judge` lets through.

        Args:
            checks: deep health checks, for that action.
        """
        if self.cluster is None:
            return ec2_nodes.act(self.account, action, nodes)
        if action == "health-check":
            return hyperpod_checks.start(self.account, self.cluster, nodes, checks, everyone=self.nodes)
        return hyperpod_requests.act(self.account, action, self.cluster, nodes)

    def before(self, action: Action, nodes: Sequence[Node]) -> list[str]:
        """Return what to know, and what to run on the cluster, before the nodes are taken."""
        if self.cluster and action == "health-check":
            return hyperpod_checks.caution(self.nodes)
        lines = ["To let running jobs end first, drain the nodes on the cluster and wait:"]
        for node in nodes:
            command = (
                hyperpod_nodes.drain_command(node, action, eks=self.cluster.eks)
                if self.cluster
                else ec2_nodes.drain_command(node, action, self.wanted)
            )
            lines.append(f"  {command}")
        if self.cluster is None and action == "replace":
            lines += [line for line in (ec2_nodes.caution(nodes, self.wanted),) if line]
        patched = any(node.patched for node in self.nodes)
        if self.cluster and action in ("reboot", "replace") and not patched:
            lines.append("HyperPod may refuse until `ultracluster software update` has run once.")
        return lines

    def after(self, action: Action, nodes: Sequence[Node]) -> list[str]:
        """Return what to run on the cluster once the nodes run again."""
        if self.cluster is None or action in ("delete", "health-check"):
            return []
        if self.cluster.eks and action == "replace":
            return []  # the new node is another one to Kubernetes
        commands = [hyperpod_nodes.resume_command(node, eks=self.cluster.eks) for node in nodes]
        return ["Give the nodes back once they run:", *(f"  {command}" for command in commands)]
