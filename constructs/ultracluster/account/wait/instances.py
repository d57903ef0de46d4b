"""Looks at clusters whose nodes are instances of the account: ParallelCluster, PCS and EKS.

Their services tell what is asked for, EC2 what runs, Run Command what the nodes and Slurm show, and the
Kubernetes API what it knows of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ultracluster.account.aws import Account
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes.node import Node
from ultracluster.account.services import Managed, managed_groups
from ultracluster.account.wait.evidence import (
    Expected,
    Probe,
    efa_interfaces,
    expectations,
    judge,
    missing,
)
from ultracluster.account.wait.look import GroupSeen, Look, NodeSeen
from ultracluster.account.wait.proof import Judge, Proof
from ultracluster.account.wait.shell import Shell
from ultracluster.account.wait.slurm import SlurmNode
from ultracluster.model import Cluster

_LEAVING = ("shutting-down", "terminated", "stopping", "stopped")


class InstanceSource:
    """Looks at one cluster of instances.

    Attributes:
        shell: how commands run on its nodes.
        nodes: the nodes of the last look.
        entrance: a node on which Slurm's commands run, if one answers.
        slurm_nodes: the nodes as Slurm knows them.
    """

    def __init__(self, account: Account, cluster: Cluster, shell: Shell) -> None:
        """Nothing is asked yet.

        Args:
            shell: how commands run on its nodes.
        """
        self._account, self._cluster = account, cluster
        self._expected = expectations(cluster)
        self._proof = Proof(account, cluster, shell, needed=True)
        self.shell: Shell = shell
        self.nodes: list[Node] = []
        self.entrance: Node | None = None

    @property
    def slurm_nodes(self) -> list[SlurmNode]:
        return self._proof.nodes

    def look(self) -> Look:
        self._proof.begin()
        groups = managed_groups(self._account, self._cluster)
        self.nodes = nodes = ec2_nodes.list_nodes(self._account, self._cluster)
        running = [node for node in nodes if node.status == "running"]
        paths = sorted({path for one in self._expected.values() for path in one.mounts})
        probes = self._proof.probes(running, paths, lambda node, probe: self._complete(node, probe, groups))
        entrances = self._entrances(running, groups, probes)
        self.entrance = next(iter(entrances), None)
        scheduler = self._proof.scheduler(entrances)
        return Look(
            tuple(self._group(group, nodes, probes, scheduler) for group in groups),
            tuple(self._proof.unproven),
        )

    def _complete(self, node: Node, probe: Probe, groups: list[Managed]) -> bool:
        expected = self._of(node, groups)
        ended = not expected.report or probe.word is not None
        return ended and probe.kubelet in ("", "registered") and not missing(expected, probe)

    def _entrances(
        self, running: list[Node], groups: list[Managed], probes: Mapping[str, Probe | str]
    ) -> list[Node]:
        """Nodes that answer and on which Slurm's commands are: the head node, else one to log in to."""
        logins = {group.listed_as for group in groups if self._role(group) == "login"}
        answering = [node for node in running if isinstance(probes.get(node.id), Probe)]
        return sorted(answering, key=lambda node: (not node.controller, node.group not in logins, node.name))

    def _role(self, group: Managed) -> str:
        return self._cluster.groups[group.members[0]].role

    def _of(self, node: Node, groups: list[Managed]) -> Expected:
        group = next((group for group in groups if group.listed_as == node.group), None)
        if group is None:
            return Expected(report=False)
        expected = self._expected[group.members[0]]
        if self._role(group) != "compute":
            return expected
        return replace(expected, efa=efa_interfaces(self._cluster, node.instance_type))

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
        if isinstance(probe, str) and not expected.report:
            probe = None  # nothing but the scheduler's word is needed
        if isinstance(probe, str):
            return NodeSeen(node.id, group.name, "starting", probe)
        ended = not expected.report or (probe is not None and probe.word is not None)
        registered = scheduler(node, expected) if expected.registers and ended else None
        return judge(
            node.id, group.name, expected, word=None, probe=probe, registered=registered, running=True
        )
