"""Looks at a HyperPod cluster, Slurm or EKS.

The API tells counts and states, the lifecycle logs in CloudWatch how the scripts ended, sessions what nodes
and Slurm show, and the Kubernetes API what it knows of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain, message
from ultracluster.account.nodes.hyperpod import LiveCluster, LiveGroup, list_nodes, read_cluster
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.evidence import (
    Expected,
    Probe,
    Word,
    efa_interfaces,
    expectations,
    judge,
    last_word,
    missing,
)
from ultracluster.account.wait.instances import InstanceSource
from ultracluster.account.wait.look import GroupSeen, Look, NodeSeen
from ultracluster.account.wait.proof import Judge, Proof
from ultracluster.account.wait.sessions_shell import Sessions
from ultracluster.account.wait.shell import RunCommand, Shell
from ultracluster.account.wait.slurm import SlurmNode
from ultracluster.model import Cluster

_LEAVING = ("ShuttingDown", "NotFound")
_ENDED = ("Failed", "RollingBack", "Deleting")
"""States from which a cluster does not come up by itself."""


class HyperPodSource:
    """Looks at one HyperPod cluster.

    Attributes:
        shell: how commands run on its nodes, once it was looked at.
        nodes: the nodes of the last look.
        entrance: a node on which Slurm's commands run, if one runs.
        slurm_nodes: the nodes as Slurm knows them.
    """

    def __init__(self, account: Account, cluster: Cluster, *, now: datetime | None = None) -> None:
        """Nothing is asked yet.

        Args:
            now: when the wait began; failures of nodes that are gone count from then on.
        """
        self._account, self._wanted = account, cluster
        self._began = now or datetime.now(UTC)
        self._expected = expectations(cluster)
        # EKS manages the groups that HyperPod does not; none of our scripts runs there
        managed = cluster.in_account
        self._managed = InstanceSource(account, cluster, RunCommand(account)) if managed else None
        self._proof: Proof | None = None
        self.shell: Shell | None = None
        self.entrance: Node | None = None
        self.nodes: list[Node] = []
        self._when: dict[tuple[str, str], int] = {}

    @property
    def slurm_nodes(self) -> list[SlurmNode]:
        return self._proof.nodes if self._proof else []

    def look(self) -> Look:
        wanted = self._wanted
        cluster = read_cluster(self._account, wanted.cluster_name)
        controllers = set(wanted.with_role("controller"))
        nodes = self.nodes = list_nodes(self._account, cluster, controllers)
        if self._proof is None:
            self.shell = Sessions(self._account, cluster.id)
            self._proof = Proof(self._account, wanted, self.shell)
        self._proof.begin()
        words = self._words(cluster, nodes)
        running = [node for node in nodes if node.status == "Running"]
        ended = [node for node in running if self._ended(node, words)]
        probes = self._probes(ended)
        first = sorted(running, key=lambda node: (not node.controller, node.name))
        self.entrance = next(iter(first), None)
        scheduler = self._proof.scheduler(first)
        groups = [self._group(name, cluster, nodes, words, probes, scheduler) for name in wanted.in_service]
        gone = self._gone(words, nodes)
        groups = [replace(group, nodes=(*group.nodes, *gone.get(group.name, ()))) for group in groups]
        unproven = list(self._proof.unproven)
        if self._managed:
            managed = self._managed.look()
            groups = [*managed.groups, *groups]
            unproven += [line for line in managed.unproven if line not in unproven]
        return Look(tuple(groups), tuple(unproven))

    def _ended(self, node: Node, words: Mapping[tuple[str, str], Word]) -> bool:
        expected = self._expected.get(node.group, Expected(report=False))
        word = words.get((node.group, node.id))
        return not expected.report or (word is not None and word.state != "failed")

    def _probes(self, nodes: list[Node]) -> Mapping[str, Probe | str]:
        assert self._proof
        paths = sorted({path for one in self._expected.values() for path in one.mounts})
        return self._proof.probes(nodes, paths, lambda node, probe: not missing(self._of(node), probe))

    def _of(self, node: Node) -> Expected:
        """Return what a node must show: a group on EKS may have several types."""
        expected = self._expected.get(node.group, Expected(report=False))
        if not expected.efa or not node.instance_type:
            return expected
        return replace(expected, efa=efa_interfaces(self._wanted, node.instance_type))

    def _group(
        self,
        name: str,
        cluster: LiveCluster,
        nodes: list[Node],
        words: Mapping[tuple[str, str], Word],
        probes: Mapping[str, Probe | str],
        scheduler: Judge,
    ) -> GroupSeen:
        state = cluster.group(name)
        count = self._wanted.groups[name].settings.count
        if state is None:
            failed = "the cluster has no such group: deploy the file first" if count else ""
            return GroupSeen(name, count, failed=failed)
        members = [node for node in nodes if node.group == name]
        seen = tuple(
            self._node(node, words.get((name, node.id)), probes.get(node.id), scheduler) for node in members
        )
        note = f"{state.current} of {state.target}, {state.status}" if state.current != state.target else ""
        return GroupSeen(name, state.target, seen, note, _trouble(cluster, state, count))

    def _node(self, node: Node, word: Word | None, probe: Probe | str | None, scheduler: Judge) -> NodeSeen:
        if node.status == "Failure" or node.status in _LEAVING or (word and word.state == "failed"):
            reason = word.reason if word and word.state == "failed" else ""
            said = ": ".join(part for part in (node.status, reason or node.message) if part)
            return NodeSeen(node.name, node.group, "failed", said)
        if node.status != "Running":
            checking = " for about two hours" if node.status == "DeepHealthCheckInProgress" else ""
            waits = f"{node.status}{checking}" + (f": {node.message}" if node.message else "")
            return NodeSeen(node.name, node.group, "starting", waits)
        if isinstance(probe, str):  # its log says that its scripts have ended well: nothing is against it
            assert self._proof
            self._proof.note(f"mounts and interfaces as nodes show them: {probe}")
            probe = None
        expected = self._of(node)
        return judge(
            node.name,
            node.group,
            expected,
            word=word,
            probe=probe,
            registered=scheduler(node, expected) if expected.registers else None,
            running=False,
            waiting_for="HyperPod calls it Running, its lifecycle log has no line READY or DEGRADED",
        )

    def _words(self, cluster: LiveCluster, nodes: list[Node]) -> dict[tuple[str, str], Word]:
        """Return how the scripts ended, by group and instance id: the newest line of each lifecycle log."""
        if not any(expected.report for expected in self._expected.values()):
            return {}
        launched = [node.launched for node in nodes if node.launched]
        since = min([self._began, *launched]) - timedelta(minutes=5)
        logs = self._account.client("logs")
        newest: dict[tuple[str, str], tuple[int, Word]] = {}
        try:
            pages = logs.get_paginator("filter_log_events").paginate(
                logGroupName=f"/aws/sagemaker/Clusters/{cluster.name}/{cluster.id}",
                logStreamNamePrefix="LifecycleConfig/", filterPattern="?READY ?DEGRADED ?FAILED",
                startTime=int(since.timestamp() * 1000),
            )  # fmt: skip
            for page in pages:
                for event in page["events"]:
                    word = last_word(event.get("message", ""))
                    parts = event.get("logStreamName", "").split("/")
                    when = int(event.get("timestamp", 0))
                    if word and len(parts) >= 3 and when >= newest.get((parts[1], parts[2]), (0, word))[0]:
                        newest[parts[1], parts[2]] = (when, word)
        except AWS_ERRORS as error:
            if "does not exist" in message(error):
                return {}  # no node has come so far
            raise AccountError(explain(error)) from None
        self._when = {key: when for key, (when, _) in newest.items()}
        return {key: word for key, (_, word) in newest.items()}

    def _gone(self, words: Mapping[tuple[str, str], Word], nodes: list[Node]) -> dict[str, list[NodeSeen]]:
        """Instances that failed since the wait began and are not in the list any more."""
        ids = {node.id for node in nodes}
        began = int(self._began.timestamp() * 1000)
        found: dict[str, list[NodeSeen]] = {}
        for (group, node), word in words.items():
            if word.state == "failed" and node not in ids and self._when[group, node] >= began:
                found.setdefault(group, []).append(NodeSeen(node, group, "failed", word.reason, gone=True))
        return found


def _trouble(cluster: LiveCluster, group: LiveGroup, count: int) -> str:
    """Return why the service does not bring a group up by itself; empty if it does."""
    if cluster.status in _ENDED:
        return f"the cluster is {cluster.status}" + (f": {cluster.failure}" if cluster.failure else "")
    if group.status == "Failed":
        return f"HyperPod calls the group Failed{': ' + cluster.failure if cluster.failure else ''}"
    if count and not group.target:
        return (
            f"HyperPod asks for 0 nodes and the file for {count}: it gives a group up that finds no "
            f"capacity; when there is some, `ultracluster nodes add ... --group {group.name} --to {count}`"
        )
    return ""
