"""ParallelCluster: a head node, login nodes and queues, all of one stack that it makes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.account.aws import Account
from ultracluster.account.services.service import Managed, Marks, Service
from ultracluster.model import Cluster

LOGIN = "LoginNode"
"""Group under which login nodes are listed, whichever pool they are of."""
_HEAD = "HeadNode"
_TYPE = "parallelcluster:node-type"


def _marks(account: Account, cluster: Cluster) -> Marks:
    def group_of(tags: Mapping[str, str]) -> str:
        return tags.get("parallelcluster:queue-name", "") or tags.get(_TYPE, "")

    return Marks(
        {"parallelcluster:cluster-name": (cluster.cluster_name,)},
        group_of,
        lambda tags: tags.get(_TYPE) == _HEAD,
    )


def _groups(account: Account, cluster: Cluster) -> list[Managed]:
    cloudformation = account.client("cloudformation")
    stack: dict[str, Any] = cloudformation.describe_stacks(StackName=cluster.cluster_name)["Stacks"][0]
    status = str(stack["StackStatus"])
    lost = status.endswith("_FAILED") or "ROLLBACK" in status or status.startswith("DELETE_")
    failed = f"the stack {cluster.cluster_name} is {status}" if lost else ""
    login = cluster.with_role("login")
    found = [
        Managed("head node", _HEAD, tuple(cluster.with_role("controller")), 1, failed=failed),
        Managed("login nodes", LOGIN, tuple(login), sum(one.settings.count for one in login.values())),
        *(
            Managed(queue, queue, tuple(groups), sum(group.settings.count for group in groups.values()))
            for queue, groups in cluster.partitions.items()
        ),
    ]
    return [one for one in found if one.members]


PARALLELCLUSTER = Service(title="ParallelCluster", marks=_marks, groups=_groups)
