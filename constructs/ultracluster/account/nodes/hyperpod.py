"""Nodes of a HyperPod cluster, Slurm or EKS: what they are, and what may be asked of them now.

Nothing is asked of AWS for a node that is not in a state that allows it, and what is under way already is
reported, not asked again: a command may be run twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, plain_errors
from ultracluster.account.nodes.node import Action, Node, Outcome, nearest

STATUSES = (
    "Running", "Failure", "Pending", "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress",
    "NotFound",
)  # fmt: skip
"""Every node status of the API (ClusterInstanceStatus)."""


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """One instance group, as DescribeCluster describes it."""

    name: str
    current: int
    target: int
    status: str = ""
    minimum: int = 0
    role: str = ""
    """Slurm's role: `Controller`, `Login` or `Compute`; empty on EKS."""
    instance_type: str = ""
    image_id: str = ""
    image: str = ""
    image_status: str = ""
    update: str = ""
    """Status of the last software update."""
    plan_status: str = ""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A HyperPod cluster, as DescribeCluster describes it."""

    name: str
    arn: str
    status: str
    failure: str
    continuous: bool
    eks: bool
    groups: tuple[LiveGroup, ...]
    recovery: bool = True
    """Whether HyperPod replaces faulty nodes by itself."""

    @property
    def id(self) -> str:
        return self.arn.rsplit("/", 1)[-1]

    def group(self, name: str) -> LiveGroup | None:
        return next((group for group in self.groups if group.name == name), None)


def read_cluster(account: Account, name: str) -> LiveCluster:
    """The cluster's state.

    Raises:
        AccountError: there is no such cluster, or it cannot be read.
    """
    sagemaker = account.client("sagemaker")
    try:
        answer = sagemaker.describe_cluster(ClusterName=name)
    except AWS_ERRORS as error:
        raise AccountError(_no_cluster(name, account, error)) from None
    groups = [*answer.get("InstanceGroups", []), *answer.get("RestrictedInstanceGroups", [])]
    return LiveCluster(
        name=answer["ClusterName"],
        arn=answer["ClusterArn"],
        status=answer["ClusterStatus"],
        failure=answer.get("FailureMessage", ""),
        continuous=answer.get("NodeProvisioningMode") == "Continuous",
        eks="Eks" in answer.get("Orchestrator", {}),
        groups=tuple(_group(entry) for entry in groups),
        recovery=answer.get("NodeRecovery") != "None",
    )


def list_nodes(account: Account, cluster: LiveCluster, controllers: Collection[str] = ()) -> list[Node]:
    """Every node, those without an instance yet included (continuous provisioning), by group and id.

    Args:
        controllers: names of groups that are controllers, besides those that the API names.

    Raises:
        AccountError: the list cannot be read; half a list is never given.
    """
    sagemaker = account.client("sagemaker")
    request: dict[str, Any] = {"ClusterName": cluster.name, "PaginationConfig": {"PageSize": 100}}
    if cluster.continuous:
        request["IncludeNodeLogicalIds"] = True
    with plain_errors():
        pages = sagemaker.get_paginator("list_cluster_nodes").paginate(**request)
        found = [
            _node(entry, cluster, controllers) for page in pages for entry in page["ClusterNodeSummaries"]
        ]
    return sorted(found, key=lambda node: (node.group, node.name))


def describe_node(account: Account, cluster: LiveCluster, node: Node) -> dict[str, Any]:
    """Everything the API tells of one node.

    Raises:
        AccountError: it cannot be read.
    """
    sagemaker = account.client("sagemaker")
    with plain_errors():
        if node.id:
            answer = sagemaker.describe_cluster_node(ClusterName=cluster.name, NodeId=node.id)
        else:
            answer = sagemaker.describe_cluster_node(ClusterName=cluster.name, NodeLogicalId=node.logical_id)
    return dict(answer["NodeDetails"])


def absent(account: Account, cluster: LiveCluster, name: str, nodes: Sequence[Node]) -> Outcome:
    """Return what to say of a name that fits no node: replaced before, or never there.

    Events keep the ids of instances that are gone; only continuous provisioning has events.
    """
    sagemaker = account.client("sagemaker")
    if name.startswith("i-") and cluster.continuous:
        try:
            answer = sagemaker.list_cluster_events(ClusterName=cluster.name, NodeId=name, MaxResults=1)
            if answer.get("Events"):
                last = answer["Events"][0].get("Description", "")
                return Outcome(
                    name, "already", f"has left the cluster: {last}" if last else "has left the cluster"
                )
        except AWS_ERRORS:
            pass  # the plain answer below is still true
    why = f"no such node in {cluster.name}{nearest(name, nodes)}"
    return Outcome(name, "refused", why + "; if it was replaced or deleted before, nothing is left to do")


def judge(action: Action, cluster: LiveCluster, nodes: Sequence[Node]) -> list[Outcome]:
    """Return what may be asked now: `would`, `already` or `refused`, one for each node and in their order."""
    stop = cluster_stop(action, cluster)
    return [
        Outcome(node.name, "refused", stop, node.group) if stop else _judge_one(action, node)
        for node in nodes
    ]


def judge_add(cluster: LiveCluster, group: str, count: int) -> Outcome | None:
    """Return why nodes cannot be added now, if so."""
    if not cluster.continuous:
        why = (
            "only clusters with continuous provisioning take single nodes; raise `count` in the "
            "environment file and deploy"
        )
        return Outcome(f"{count} more", "refused", why, group)
    stop = cluster_stop("add", cluster)
    if stop:
        return Outcome(f"{count} more", "refused", stop, group)
    live = cluster.group(group)
    if live is None:
        names = ", ".join(group.name for group in cluster.groups)
        return Outcome(f"{count} more", "refused", f"no group {group}; there are {names}", group)
    if live.role == "Controller":
        return Outcome(f"{count} more", "refused", "a Slurm cluster has exactly one controller", group)
    if live.status in ("Creating", "Updating") and live.minimum:
        why = f"{group} is {live.status} towards its minimum count; wait until it is InService"
        return Outcome(f"{count} more", "refused", why, group)
    return None


def slurm_request(action: Action, node: Node) -> str:
    """Return how Slurm asks HyperPod for the same; the match is exact, a blank too many is silently ignored
    (SageMaker Developer Guide, "Manually replace or reboot a node using Slurm")."""
    word = "Reboot" if action == "reboot" else "Replace"
    return f'scontrol update node={node.dns.split(".")[0] or "<node>"} state=fail reason="Action:{word}"'


def drain_command(node: Node, action: Action, *, eks: bool) -> str:
    """Return what empties a node before it is taken, to be run on the cluster."""
    host = node.dns.split(".")[0] or "<node>"
    if eks:
        return f"kubectl drain hyperpod-{node.id or '<node>'} --ignore-daemonsets --delete-emptydir-data"
    return f'scontrol update nodename={host} state=drain reason="{action}"'


def resume_command(node: Node, *, eks: bool) -> str:
    """Return what gives a drained node back: Slurm's node names survive a replacement, and so does the drain.
    Not before the node runs: resuming withdraws a recovery that Slurm has asked for."""
    if eks:
        return f"kubectl uncordon hyperpod-{node.id or '<node>'}"
    return f"scontrol update nodename={node.dns.split('.')[0] or '<node>'} state=resume"


def cluster_stop(action: str, cluster: LiveCluster) -> str:
    """Return why the cluster takes no such request now; empty if it does."""
    if cluster.status == "InService":
        return ""
    if cluster.status in ("Creating", "Updating", "SystemUpdating", "RollingBack"):
        return f"cluster {cluster.name} is {cluster.status}; {action} works when it is InService again"
    if cluster.status in ("Deleting", "Failed"):
        return f"cluster {cluster.name} is {cluster.status}; run `ultracluster doctor` for the cause"
    return f"cluster {cluster.name} is in status {cluster.status}, which this release does not know"


def _judge_one(action: Action, node: Node) -> Outcome:
    def say(result: Any, why: str = "") -> Outcome:
        return Outcome(node.name, result, why, node.group)

    if node.status not in STATUSES:
        return say("refused", f"status {node.status} is one that this release does not know")
    if node.controller and action != "health-check":
        return say("refused", _CONTROLLER[action])
    if node.status == "NotFound" or node.status == "ShuttingDown":
        return say("already", f"is leaving the cluster ({node.status})")
    if node.status == "SystemUpdating":
        return say("refused", "its software is being updated; wait until it is Running")
    if node.status == "Pending":
        if action == "delete":
            return say("would")
        if action == "health-check":
            return say("refused", "is still being started")
        return say("already", "is being started or replaced (Pending)")
    if node.status == "DeepHealthCheckInProgress":
        if action == "health-check":
            return say("already", "is being checked")
        if action != "delete":
            return say("refused", "is in a deep health check of about two hours; wait until it is Running")
    if node.status == "Failure" and action == "health-check":
        return say("refused", f"has failed{_colon(node.message)}; replace it instead")
    return say("would")


_CONTROLLER: dict[str, str] = {
    "reboot": "is the controller, which HyperPod's batch calls do not take: log in with "
    "`ultracluster connect` and run `sudo systemctl reboot`; running jobs go on",
    "replace": "is the controller, which HyperPod never replaces by itself: back it up, then rebuild it with "
    "`ultracluster software update --group` and its group",
    "delete": "is the controller, without which there is no cluster",
}


def _group(entry: dict[str, Any]) -> LiveGroup:
    return LiveGroup(
        name=entry.get("InstanceGroupName", ""),
        current=entry.get("CurrentCount", 0),
        target=entry.get("TargetCount", 0),
        status=entry.get("Status", ""),
        minimum=entry.get("MinCount", 0),
        role=entry.get("SlurmConfig", {}).get("NodeType", ""),
        instance_type=entry.get("InstanceType", "").removeprefix("ml."),
        image_id=entry.get("CurrentImageId", ""),
        image=entry.get("CurrentImageReleaseVersion", ""),
        image_status=entry.get("ImageVersionStatus", ""),
        update=entry.get("SoftwareUpdateStatus", ""),
        plan_status=entry.get("TrainingPlanStatus", ""),
    )


def _node(entry: dict[str, Any], cluster: LiveCluster, controllers: Collection[str]) -> Node:
    status: dict[str, str] = entry.get("InstanceStatus", {})
    group = cluster.group(entry["InstanceGroupName"])
    return Node(
        id=entry.get("InstanceId", ""),
        group=entry["InstanceGroupName"],
        status=status.get("Status", ""),
        instance_type=entry.get("InstanceType", "").removeprefix("ml."),
        logical_id=entry.get("NodeLogicalId", ""),
        dns=entry.get("PrivateDnsHostname", ""),
        message=status.get("Message", ""),
        launched=entry.get("LaunchTime"),
        image=entry.get("CurrentImageReleaseVersion", ""),
        image_status=entry.get("ImageVersionStatus", ""),
        controller=entry["InstanceGroupName"] in controllers or bool(group and group.role == "Controller"),
        patched=entry.get("LastSoftwareUpdateTime"),
    )


def _no_cluster(name: str, account: Account, error: Exception) -> str:
    if code(error) in ("ResourceNotFound", "ResourceNotFoundException"):
        return f"there is no HyperPod cluster {name} in {account.region} of this account; is it deployed?"
    return explain(error)


def _colon(text: str) -> str:
    return f": {text}" if text else ""
