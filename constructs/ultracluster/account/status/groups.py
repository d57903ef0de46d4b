"""Node groups as their services have them, beside the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ultracluster.account.aws import Account
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes.node import Node
from ultracluster.account.services import managed_groups
from ultracluster.account.status.rows import AnyRow, Difference, GroupState, NodeState, ReleaseState
from ultracluster.model import Cluster

RUNNING = "running"


def group_rows(account: Account, cluster: Cluster) -> Iterator[AnyRow]:
    """Groups, their nodes, and what differs from the file.

    Raises:
        AccountError: a service cannot be asked.
    """
    if cluster.in_service:
        live = hyperpod_nodes.read_cluster(account, cluster.cluster_name)
        nodes = hyperpod_nodes.list_nodes(account, live, set(cluster.with_role("controller")))
        wanted = {name: group.settings.count for name, group in cluster.in_service.items()}
        most = {name: group.most_nodes for name, group in cluster.in_service.items()}
        asked = {one.name: (one.target, one.status) for one in live.groups}
        source = "SageMaker DescribeCluster, ListClusterNodes"
        yield from _beside_file(nodes, wanted, asked, source)
        for name, (count, _) in asked.items():
            if name in wanted and not wanted[name] <= count <= most[name]:
                actual = f"the service is asked for {count}"
                yield Difference("count", name, f"the file has {wanted[name]} nodes", actual, source)
    if cluster.in_account:
        managed = managed_groups(account, cluster)
        nodes = ec2_nodes.list_nodes(account, cluster)
        wanted = {
            one.listed_as: sum(cluster.groups[name].settings.count for name in one.members) for one in managed
        }
        asked = {one.listed_as: (one.wanted, one.failed or one.note) for one in managed}
        yield from _beside_file(nodes, wanted, asked, "EC2 DescribeInstances, and the groups' own service")
    release = cluster.environment.software.release
    yield ReleaseState(str(release), "", None, "the environment file")


def _beside_file(
    nodes: Sequence[Node], wanted: Mapping[str, int], asked: Mapping[str, tuple[int, str]], source: str
) -> Iterator[AnyRow]:
    """Groups with their nodes, and groups that only one of file and service has."""
    for name in dict.fromkeys([*wanted, *asked, *(node.group for node in nodes)]):
        own = [node for node in nodes if node.group == name]
        running = sum(node.status.lower() == RUNNING for node in own)
        images = dict(Counter(node.image for node in own if node.image))
        count, note = asked.get(name, (None, ""))
        yield GroupState(name, wanted.get(name, 0), count, running, len(own), images, note, source)
        if name not in wanted:
            there = f"is there with {len(own)} nodes"
            yield Difference("group", name or "(no group)", "the file has no such group", there, source)
        elif count is None:
            yield Difference(
                "group", name, f"the file has it with {wanted[name]} nodes", "is missing", source
            )
    for node in nodes:
        yield NodeState(node.name, node.group, node.status, node.image, node.image_status, source)
