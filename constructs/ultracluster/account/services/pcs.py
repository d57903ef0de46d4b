"""AWS Parallel Computing Service: compute node groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ultracluster.account.aws import Account
from ultracluster.account.services.service import Managed, Marks, Service, in_order, pair, stated
from ultracluster.model import Cluster

_TAG = "aws:pcs:compute-node-group-id"


def _marks(account: Account, cluster: Cluster) -> Marks:
    names = {
        str(summary["id"]): str(summary["name"]) for summary in _summaries(account, cluster.cluster_name)
    }
    return Marks({_TAG: tuple(sorted(names))}, lambda tags: names.get(tags.get(_TAG, ""), ""))


def _groups(account: Account, cluster: Cluster) -> list[Managed]:
    groups: dict[str, Managed] = {}
    for summary in _summaries(account, cluster.cluster_name):
        name = str(summary["name"])
        if name not in cluster.groups:
            continue
        group = _described(account, cluster.cluster_name, summary)
        wanted = int(group.get("scalingConfiguration", {}).get("minInstanceCount", 0))
        says = "; ".join(_errors(group))
        groups[name] = stated(cluster, name, name, wanted, str(group.get("status", "")), says)
    return in_order(cluster, groups)


def _complaints(account: Account, name: str) -> list[tuple[str, str]]:
    pcs = account.client("pcs")
    cluster = pcs.get_cluster(clusterIdentifier=name)["cluster"]
    found = [(f"cluster {name}", error) for error in _errors(cluster)]
    for summary in _summaries(account, name):
        group = _described(account, name, summary)
        found += [(f"group {summary['name']}", error) for error in _errors(group)]
    return found


def _statuses(account: Account) -> dict[str, str]:
    pages = account.client("pcs").get_paginator("list_clusters").paginate()
    return {
        str(cluster["name"]): str(cluster.get("status", "")) for page in pages for cluster in page["clusters"]
    }


def _summaries(account: Account, cluster: str) -> Iterator[Mapping[str, Any]]:
    pcs = account.client("pcs")
    pages = pcs.get_paginator("list_compute_node_groups").paginate(clusterIdentifier=cluster)
    return (summary for page in pages for summary in page["computeNodeGroups"])


def _described(account: Account, cluster: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    pcs = account.client("pcs")
    answer = pcs.get_compute_node_group(clusterIdentifier=cluster, computeNodeGroupIdentifier=summary["id"])
    return answer["computeNodeGroup"]


def _errors(described: Mapping[str, Any]) -> list[str]:
    return [pair(one.get("code"), one.get("message")) for one in described.get("errorInfo", [])]


PCS = Service(title="PCS", marks=_marks, groups=_groups, complaints=_complaints, statuses=_statuses)
