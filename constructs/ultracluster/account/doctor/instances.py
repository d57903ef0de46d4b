"""What is wrong with a cluster whose nodes are instances of the account."""

from __future__ import annotations

from datetime import datetime

from ultracluster.account.aws import Account
from ultracluster.account.doctor.examination import Fact, Inquiry, said
from ultracluster.account.doctor.logs import error_lines, newest_group
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.services import service_of
from ultracluster.model import Cluster


def examine_instances(account: Account, cluster: Cluster, inquiry: Inquiry, since: datetime) -> None:
    """Ask for the nodes, their service for its reasons, and the logs."""

    def states() -> list[Fact]:
        nodes = ec2_nodes.list_nodes(account, cluster)
        return [
            Fact("nodes", f"{node.group} {node.name}", said(node.status, node.message), "warning")
            for node in nodes
            if node.status != "running"
        ]

    inquiry.ask("nodes", states)
    service = service_of(cluster)
    if service and (complaints := service.complaints):

        def reasons() -> list[Fact]:
            answers = complaints(account, cluster.cluster_name)
            return [Fact(service.title, where, text) for where, text in answers]

        inquiry.ask(service.title, reasons)
    if cluster.log_group:
        groups: list[str] = []
        searched = inquiry.ask("log groups", lambda: newest_group(account, cluster.log_group, groups))
        inquiry.ask(
            "node logs",
            lambda: error_lines(account, groups[0], since),
            needs=[searched],
            when=lambda: bool(groups),
        )
