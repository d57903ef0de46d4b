"""What EKS, PCS and ParallelCluster are asked for, and what they say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, message
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.config import Environment
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.model import resolve
from ultracluster.model.partitions import partitions

_LOST = ("CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED", "DELETING", "SUSPENDED")
"""States from which a group of EKS or PCS does not come up by itself."""


@dataclass(frozen=True, slots=True)
class Managed:
    """One group as its service has it."""

    name: str
    """In the file; of ParallelCluster's compute nodes the queue, with which its instances are marked."""
    listed_as: str
    """Name under which `ec2_nodes.list_nodes` has its nodes."""
    members: tuple[str, ...]
    """Its groups of the file."""
    wanted: int
    note: str = ""
    failed: str = ""


def managed_groups(account: Account, environment: Environment) -> list[Managed]:
    """Every group whose nodes are instances of the account.

    Raises:
        AccountError: the cluster is not there, or cannot be read.
    """
    kind = environment.orchestrator.kind
    try:
        if kind == "parallelcluster":
            return _parallelcluster(account, environment)
        return _pcs(account, environment) if kind == "pcs" else _eks(account, environment)
    except AWS_ERRORS as error:
        missing = code(error).startswith("ResourceNotFound") or "does not exist" in message(error)
        if missing:
            raise AccountError(
                f"there is no cluster {environment.cluster_name} in {account.region} of this account: "
                f"deploy it first (`make deploy ENV={environment.name}`)"
            ) from None
        raise AccountError(explain(error)) from None


def _parallelcluster(account: Account, environment: Environment) -> list[Managed]:
    cloudformation = account.client("cloudformation")
    stack: dict[str, Any] = cloudformation.describe_stacks(StackName=environment.cluster_name)["Stacks"][0]
    status = str(stack["StackStatus"])
    lost = status.endswith("_FAILED") or "ROLLBACK" in status or status.startswith("DELETE_")
    failed = f"the stack {environment.cluster_name} is {status}" if lost else ""
    login = environment.groups("login")
    made = [
        Managed("head node", "HeadNode", tuple(environment.groups("controller")), 1, failed=failed),
        Managed("login nodes", ec2_nodes.LOGIN, tuple(login), sum(one.count for one in login.values())),
        *(
            Managed(queue, queue, tuple(groups), sum(one.count for one in groups.values()))
            for queue, groups in partitions(environment).items()
        ),
    ]
    return [one for one in made if one.members]


def _pcs(account: Account, environment: Environment) -> list[Managed]:
    pcs, cluster = account.client("pcs"), environment.cluster_name
    made: dict[str, Managed] = {}
    for page in pcs.get_paginator("list_compute_node_groups").paginate(clusterIdentifier=cluster):
        for summary in page["computeNodeGroups"]:
            name = str(summary["name"])
            if name not in environment.node_groups:
                continue
            found: dict[str, Any] = pcs.get_compute_node_group(
                clusterIdentifier=cluster, computeNodeGroupIdentifier=summary["id"]
            )["computeNodeGroup"]
            says = "; ".join(_pair(one.get("code"), one.get("message")) for one in found.get("errorInfo", []))
            wanted = int(found.get("scalingConfiguration", {}).get("minInstanceCount", 0))
            made[name] = _stated(environment, name, name, wanted, str(found.get("status", "")), says)
    return _in_order(environment, made)


def _eks(account: Account, environment: Environment) -> list[Managed]:
    """Managed node groups, which CloudFormation names: a label says which group of the file they are."""
    eks, cluster = account.client("eks"), environment.cluster_name
    plane = str(eks.describe_cluster(name=cluster)["cluster"].get("status", ""))
    lost = f"the cluster {cluster} is {plane}" if plane in ("FAILED", "DELETING") else ""
    made: dict[str, Managed] = {}
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=cluster):
        for listed in page["nodegroups"]:
            found: dict[str, Any] = eks.describe_nodegroup(clusterName=cluster, nodegroupName=listed)[
                "nodegroup"
            ]
            labels: dict[str, str] = found.get("labels") or {}
            name = str(labels.get(GROUP_LABEL, listed))
            if name not in environment.node_groups:
                continue
            issues = found.get("health", {}).get("issues", [])
            says = "; ".join(dict.fromkeys(_pair(one.get("code"), one.get("message")) for one in issues))
            wanted = int(found.get("scalingConfig", {}).get("desiredSize", 0))
            stated = _stated(environment, name, listed, wanted, str(found.get("status", "")), says)
            made[name] = replace(stated, failed=lost or stated.failed)
    for name, launched in resolve(environment).by_karpenter.items():
        group = launched.settings
        note = "" if group.count else "Karpenter launches its nodes when pods need them"
        made[name] = Managed(name, name, (name,), group.count, note, lost)
    return _in_order(environment, made)


def _stated(environment: Environment, name: str, listed: str, wanted: int, status: str, says: str) -> Managed:
    count = environment.node_groups[name].count
    note = says or (f"{wanted} of the file's {count} nodes are asked for now" if wanted < count else "")
    failed = _pair(f"the group is {status}", says) if status in _LOST else ""
    return Managed(name, listed, (name,), wanted, note, failed)


def _in_order(environment: Environment, made: dict[str, Managed]) -> list[Managed]:
    """As the file has them; a group that the service lacks is one that never comes up, if it has nodes."""
    hyperpod = environment.orchestrator.kind == "hyperpod-eks"
    for name, group in environment.node_groups.items():
        if name not in made and group.count and not (hyperpod and group.role == "compute"):
            failed = "its service has no such group: deploy the file first"
            made[name] = Managed(name, name, (name,), group.count, failed=failed)
    return [made[name] for name in environment.node_groups if name in made]


def _pair(head: str | None, tail: str | None) -> str:
    return ": ".join(part for part in (head, tail) if part)
