"""What is wrong with a cluster whose nodes are instances of the account."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ultracluster.account.aws import Account
from ultracluster.account.doctor.examination import Examination, Fact, ask, said
from ultracluster.account.doctor.logs import error_lines, newest_group
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.services import service_of
from ultracluster.model import Cluster


def examine_instances(
    account: Account,
    cluster: Cluster,
    found: Examination,
    since: datetime,
    progress: Callable[[str], None],
) -> None:
    """Ask for the nodes, and their service for its reasons; what they say is added to `found`."""

    def states() -> list[Fact]:
        nodes = ec2_nodes.list_nodes(account, cluster)
        return [
            Fact("nodes", f"{node.group} {node.name}", said(node.status, node.message), "warning")
            for node in nodes
            if node.status != "running"
        ]

    ask(found, "nodes", progress, states)
    service = service_of(cluster)
    if service and (complaints := service.complaints):

        def reasons() -> list[Fact]:
            answers = complaints(account, cluster.cluster_name)
            return [Fact(service.title, where, text) for where, text in answers]

        ask(found, service.title, progress, reasons)
    if cluster.log_group:
        groups: list[str] = []
        ask(found, "log groups", progress, lambda: newest_group(account, cluster.log_group, groups))
        if groups:
            ask(found, "node logs", progress, lambda: error_lines(account, groups[0], since))
