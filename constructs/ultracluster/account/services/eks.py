"""EKS: managed node groups, and nodes that Karpenter launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ultracluster.account.aws import Account
from ultracluster.account.services.service import Managed, Marks, Service, in_order, pair, stated
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.model import Cluster


def _marks(account: Account, cluster: Cluster) -> Marks:
    # Kubernetes' names have no capitals
    pools = {name.lower(): name for name, group in cluster.groups.items() if group.by_karpenter}
    values = {"eks:cluster-name": (cluster.cluster_name,)}
    if pools:  # Karpenter's own mark, not that of EKS's groups
        values["eks:eks-cluster-name"] = (cluster.cluster_name,)

    def group_of(tags: Mapping[str, str]) -> str:
        pool = tags.get("karpenter.sh/nodepool", "")
        return tags.get("eks:nodegroup-name") or pools.get(pool, pool)

    return Marks(values, group_of)


def _groups(account: Account, cluster: Cluster) -> list[Managed]:
    """Managed node groups, which CloudFormation names: a label says which group of the file they are."""
    eks, cluster_name = account.client("eks"), cluster.cluster_name
    plane = str(eks.describe_cluster(name=cluster_name)["cluster"].get("status", ""))
    lost = f"the cluster {cluster_name} is {plane}" if plane in ("FAILED", "DELETING") else ""
    groups: dict[str, Managed] = {}
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=cluster_name):
        for listed in page["nodegroups"]:
            answer = eks.describe_nodegroup(clusterName=cluster_name, nodegroupName=listed)
            described: dict[str, Any] = answer["nodegroup"]
            labels: dict[str, str] = described.get("labels") or {}
            name = str(labels.get(GROUP_LABEL, listed))
            if name not in cluster.groups:
                continue
            says = "; ".join(dict.fromkeys(_issues(described)))
            wanted = int(described.get("scalingConfig", {}).get("desiredSize", 0))
            managed = stated(cluster, name, listed, wanted, str(described.get("status", "")), says)
            groups[name] = replace(managed, failed=lost or managed.failed)
    for name, group in cluster.groups.items():
        if group.by_karpenter:
            count = group.settings.count
            note = "" if count else "Karpenter launches its nodes when pods need them"
            groups[name] = Managed(name, name, (name,), count, note, lost)
    return in_order(cluster, groups)


def _complaints(account: Account, name: str) -> list[tuple[str, str]]:
    eks = account.client("eks")
    cluster = eks.describe_cluster(name=name)["cluster"]
    found = [(f"cluster {name}", issue) for issue in _issues(cluster)]
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=name):
        for group in page["nodegroups"]:
            described = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
            found += [(f"group {group}", issue) for issue in _issues(described)]
    return found


def _issues(described: Mapping[str, Any]) -> list[str]:
    issues: list[dict[str, str]] = described.get("health", {}).get("issues", [])
    return [pair(issue.get("code"), issue.get("message")) for issue in issues]


EKS = Service(title="EKS", marks=_marks, groups=_groups, complaints=_complaints)
