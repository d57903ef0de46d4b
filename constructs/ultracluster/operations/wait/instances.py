"""Looks at clusters whose nodes are instances of the account: ParallelCluster, PCS and EKS.

Their services tell what is asked for, EC2 what runs, Run Command what the nodes and Slurm show, and the
Kubernetes API what it knows of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ultracluster.config import Environment
from ultracluster.operations import ec2_nodes
from ultracluster.operations.aws import Account
from ultracluster.operations.nodes import Node
from ultracluster.operations.wait.evidence import (
    Expected,
    Probe,
    efa_interfaces,
    expectations,
    judge,
    missing,
)
from ultracluster.operations.wait.look import GroupSeen, Look, NodeSeen
from ultracluster.operations.wait.managed_groups import Managed, managed_groups
from ultracluster.operations.wait.proof import Judge, Proof
from ultracluster.operations.wait.shell import Shell

_LEAVING = ("shutting-down", "terminated", "stopping", "stopped")


class InstanceSource:
    """Looks at one cluster of instances."""

    def __init__(self, account: Account, environment: Environment, shell: Shell | None) -> None:
        """Nothing is asked yet.

        Args:
            shell: how commands run on its nodes; none asks none of them.
        """
        self._account, self._environment = account, environment
        self._expected = expectations(environment)
        self.proof = Proof(account, environment, shell)
        self.nodes: list[Node] = []
        """The nodes of the last look."""

    def look(self) -> Look:
        self.proof.begin()
        groups = managed_groups(self._account, self._environment)
        self.nodes = nodes = ec2_nodes.list_nodes(self._account, self._environment)
        running = [node for node in nodes if node.status == "running"]
        asked = [node for node in running if self._of(node, groups).report]
        paths = sorted({path for one in self._expected.values() for path in one.mounts})
        probes = self.proof.probes(
            asked, paths, lambda node, probe: bool(probe.word) and not missing(self._of(node, groups), probe)
        )
        scheduler = self.proof.scheduler(self._entrances(running, groups, probes))
        return Look(
            tuple(self._group(one, nodes, probes, scheduler) for one in groups), tuple(self.proof.unproven)
        )

    def _entrances(
        self, running: list[Node], groups: list[Managed], probes: Mapping[str, Probe | str]
    ) -> list[Node]:
        """Nodes that answer and on which Slurm's commands are: the head node, else one to log in to."""
        logins = {one.listed_as for one in groups if self._role(one) == "login"}
        answering = [node for node in running if isinstance(probes.get(node.id), Probe)]
        return sorted(answering, key=lambda node: (not node.controller, node.group not in logins, node.name))

    def _role(self, group: Managed) -> str:
        return self._environment.node_groups[group.members[0]].role

    def _of(self, node: Node, groups: list[Managed]) -> Expected:
        found = next((one for one in groups if one.listed_as == node.group), None)
        if found is None:
            return Expected(report=False)
        expected = self._expected[found.members[0]]
        if self._role(found) != "compute":
            return expected
        return replace(expected, efa=efa_interfaces(self._environment, node.instance_type))

    def _group(
        self, group: Managed, nodes: list[Node], probes: Mapping[str, Probe | str], scheduler: Judge
    ) -> GroupSeen:
        members = [node for node in nodes if node.group == group.listed_as]
        seen = tuple(self._node(group, node, probes.get(node.id), scheduler) for node in members)
        return GroupSeen(group.name, group.wanted, seen, group.note, group.failed)

    def _node(self, group: Managed, node: Node, probe: Probe | str | None, scheduler: Judge) -> NodeSeen:
        expected = self._of(node, [group])
        if node.status in _LEAVING:
            return NodeSeen(
                node.id, group.name, "failed", f"{node.status}: {node.message or 'no reason given'}"
            )
        if node.status != "running":
            return NodeSeen(node.id, group.name, "starting", node.status)
        if isinstance(probe, str):
            return NodeSeen(node.id, group.name, "starting", probe)
        ended = not expected.report or (probe is not None and probe.word is not None)
        registered = scheduler(node, expected) if expected.registers and ended else None
        return judge(
            node.id, group.name, expected, word=None, probe=probe, registered=registered, running=True
        )
