"""What is wrong with a cluster whose nodes are instances of the account: ParallelCluster, PCS and EKS."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ultracluster.account.aws import Account
from ultracluster.account.doctor.examination import Examination, Fact, ask, said
from ultracluster.account.doctor.logs import error_lines, newest_group
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.config import Environment


def examine_instances(
    account: Account,
    environment: Environment,
    found: Examination,
    since: datetime,
    progress: Callable[[str], None],
) -> None:
    """Ask for the nodes, and their service for its reasons; what they say is added to `found`."""
    name, kind = environment.cluster_name, environment.orchestrator.kind

    def states() -> list[Fact]:
        nodes = ec2_nodes.list_nodes(account, environment)
        return [
            Fact("nodes", f"{node.group} {node.name}", said(node.status, node.message), "warning")
            for node in nodes
            if node.status != "running"
        ]

    ask(found, "nodes", progress, states)
    if kind == "pcs":
        ask(found, "PCS", progress, lambda: _pcs(account, name))
    elif kind == "eks":
        ask(found, "EKS", progress, lambda: _eks(account, name))
    elif kind == "parallelcluster":
        groups: list[str] = []
        prefix = f"/aws/parallelcluster/{name}-"
        ask(found, "log groups", progress, lambda: newest_group(account, prefix, groups))
        if groups:
            ask(found, "node logs", progress, lambda: error_lines(account, groups[0], since))


def _pcs(account: Account, name: str) -> list[Fact]:
    pcs = account.client("pcs")
    cluster = pcs.get_cluster(clusterIdentifier=name)["cluster"]
    facts = [
        Fact("PCS", f"cluster {name}", said(entry.get("code", ""), entry.get("message", "")))
        for entry in cluster.get("errorInfo", [])
    ]
    pages = pcs.get_paginator("list_compute_node_groups").paginate(clusterIdentifier=name)
    for page in pages:
        for summary in page["computeNodeGroups"]:
            answer = pcs.get_compute_node_group(
                clusterIdentifier=name, computeNodeGroupIdentifier=summary["id"]
            )
            facts += [
                Fact("PCS", f"group {summary['name']}", said(entry.get("code", ""), entry.get("message", "")))
                for entry in answer["computeNodeGroup"].get("errorInfo", [])
            ]
    return facts


def _eks(account: Account, name: str) -> list[Fact]:
    eks = account.client("eks")
    cluster = eks.describe_cluster(name=name)["cluster"]
    facts = [
        Fact("EKS", f"cluster {name}", said(issue.get("code", ""), issue.get("message", "")))
        for issue in cluster.get("health", {}).get("issues", [])
    ]
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=name):
        for group in page["nodegroups"]:
            described = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
            facts += [
                Fact("EKS", f"group {group}", said(issue.get("code", ""), issue.get("message", "")))
                for issue in described.get("health", {}).get("issues", [])
            ]
    return facts
