"""Nodes that are plain EC2 instances: ParallelCluster, PCS and EKS, with managed node groups or Karpenter.

There is no batch call to replace one. A replacement is a termination: the service that runs the node
launches it again. Each service marks its instances with tags of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain, plain_errors
from ultracluster.account.nodes.node import Action, Node, Outcome, chunks, nearest, result_of
from ultracluster.account.services import Marks, service_of
from ultracluster.model import Cluster

LIMIT = 100
"""Instances of one request; EC2 takes more, a refusal then costs the others."""
STATES = ("pending", "running", "shutting-down", "terminated", "stopping", "stopped")
"""Every instance state (EC2 API reference, InstanceState)."""


def list_nodes(account: Account, cluster: Cluster) -> list[Node]:
    """Every instance of the cluster that is not terminated, by group and id.

    Raises:
        AccountError: the list cannot be read.
    """
    service = service_of(cluster)
    if service is None:
        return []
    ec2 = account.client("ec2")
    states = [state for state in STATES if state != "terminated"]
    nodes: dict[str, Node] = {}
    with plain_errors():
        marks = service.marks(account, cluster)
        for key, values in marks.values.items():
            if not values:
                continue
            filters = [
                {"Name": f"tag:{key}", "Values": list(values)},
                {"Name": "instance-state-name", "Values": states},
            ]
            for page in ec2.get_paginator("describe_instances").paginate(Filters=filters):
                for reservation in page.get("Reservations", []):
                    for instance in reservation["Instances"]:
                        nodes[instance["InstanceId"]] = _node(instance, marks)
    return sorted(nodes.values(), key=lambda node: (node.group, node.name))


def describe_node(account: Account, node: Node) -> dict[str, Any]:
    """Everything EC2 tells of one instance, and what its status checks say.

    Raises:
        AccountError: it cannot be read.
    """
    ec2 = account.client("ec2")
    with plain_errors():
        answer = ec2.describe_instances(InstanceIds=[node.id])
        checks = ec2.describe_instance_status(InstanceIds=[node.id], IncludeAllInstances=True)
    described = dict(answer["Reservations"][0]["Instances"][0])
    described["StatusChecks"] = [
        {key: entry[key] for key in ("InstanceStatus", "SystemStatus", "Events") if key in entry}
        for entry in checks["InstanceStatuses"]
    ]
    return described


def absent(account: Account, name: str, nodes: Sequence[Node]) -> Outcome:
    """What to say of a name that fits no node: EC2 knows an instance for about an hour after its end."""
    if name.startswith("i-"):
        ec2 = account.client("ec2")
        try:
            answer = ec2.describe_instances(InstanceIds=[name])
            states = [
                instance["State"]["Name"]
                for entry in answer["Reservations"]
                for instance in entry["Instances"]
            ]
            if states == ["terminated"]:
                return Outcome(name, "already", "is terminated")
        except AWS_ERRORS:
            pass  # the plain answer below is still true
    return Outcome(name, "refused", f"no such node{nearest(name, nodes)}")


def judge(action: Action, cluster: Cluster, nodes: Sequence[Node]) -> list[Outcome]:
    """Return what may be asked now, one for each node and in their order."""
    return [_judge_one(action, cluster, node) for node in nodes]


def act(account: Account, action: Action, nodes: Sequence[Node]) -> list[Outcome]:
    """Reboot or terminate instances that `judge` lets through; one outcome for each."""
    ec2 = account.client("ec2", once=True)
    outcomes: list[Outcome] = []
    for chunk in chunks(nodes, LIMIT):
        ids = [node.id for node in chunk]
        try:
            if action == "reboot":
                ec2.reboot_instances(InstanceIds=ids)
            else:
                ec2.terminate_instances(InstanceIds=ids)
        except AWS_ERRORS as error:
            outcomes += [Outcome(node.id, result_of(error), explain(error), node.group) for node in chunk]
        else:
            why = "" if action == "reboot" else "ends now; its service launches another: see `nodes list`"
            outcomes += [Outcome(node.id, "accepted", why, node.group) for node in chunk]
    return outcomes


def elsewhere(cluster: Cluster, action: str) -> str:
    """Why these nodes are not added, deleted or checked by a call of their own, and what is done instead."""
    if action == "health-check":
        if cluster.traits.kubernetes:
            return "EKS checks its nodes itself: `kubectl get nodes` shows AcceleratedHardwareReady"
        return "run the checks as a job: `srun --nodelist=<node> dcgmi diag -r 2`"
    return "change `count` in the environment file and deploy: the size of the group follows it"


def drain_command(node: Node, action: Action, cluster: Cluster) -> str:
    """Return what empties a node before it is taken, to be run on the cluster."""
    if cluster.traits.kubernetes:
        return f"kubectl drain {node.dns or '<node>'} --ignore-daemonsets --delete-emptydir-data"
    address = node.dns.split(".")[0].removeprefix("ip-").replace("-", ".")
    names = f"sinfo -N -h -o '%N %o' | awk '$2 == \"{address}\" {{print $1; exit}}'"
    return f'scontrol update nodename="$({names})" state=drain reason="{action}"'


def caution(nodes: Sequence[Node], cluster: Cluster) -> str:
    """Return what to know before instances are terminated; empty if nothing."""
    lines: list[str] = []
    if any(node.reserved for node in nodes):
        lines.append(
            "a reserved place is free once the instance is gone, which takes minutes, and only while the "
            "reservation or block is active: a block that is about to end gives no node back"
        )
    if cluster.traits.slurm:
        lines.append("only nodes within the minimum count come back at once; others with the next job")
    return "; ".join(lines)


def _judge_one(action: Action, cluster: Cluster, node: Node) -> Outcome:
    def say(result: Any, why: str = "") -> Outcome:
        return Outcome(node.name, result, why, node.group)

    if action in ("delete", "health-check"):
        return say("refused", elsewhere(cluster, action))
    if node.controller and action == "replace":
        return say("refused", "is the head node: nothing launches it again, and the cluster's state is on it")
    if node.status not in STATES:
        return say("refused", f"state {node.status} is one that this release does not know")
    if node.status in ("shutting-down", "terminated"):
        return say("already", f"is {node.status}")
    if node.status == "pending":
        return say("already", "is being started")
    if action == "reboot" and node.status != "running":
        return say("refused", f"is {node.status}; replace it instead")
    return say("would")


def _node(instance: dict[str, Any], marks: Marks) -> Node:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    return Node(
        id=instance["InstanceId"],
        group=marks.group_of(tags),
        status=instance["State"]["Name"],
        instance_type=instance.get("InstanceType", ""),
        dns=instance.get("PrivateDnsName", ""),
        message=instance.get("StateReason", {}).get("Message", ""),
        launched=instance.get("LaunchTime"),
        image=instance.get("ImageId", ""),
        controller=marks.is_controller(tags),
        reserved=bool(instance.get("CapacityReservationId"))
        or instance.get("InstanceLifecycle") == "capacity-block",
    )
