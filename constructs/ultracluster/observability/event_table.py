"""Which events AWS sends to EventBridge about a cluster, what is said of each, and where AWS sends none.

Nothing here imports the CDK. A pattern names the cluster, its stacks or its reservations, never an id that is
known only after the deploy: the rules are there before the cluster is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ultracluster.config.orchestrator import ParallelCluster
from ultracluster.model import Cluster
from ultracluster.observability.event_words import FAILED_STACKS, HEALTH_SERVICES

Pattern = dict[str, Any]
LONGEST_PATTERN = 2048
"""Characters (Amazon EventBridge User Guide, quotas: size of an event pattern)."""
LONGEST_ARN = len("arn:aws-us-gov:cloudformation:ap-southeast-1:111122223333:stack/")
"""Characters in front of a stack's name, of the longest partition and the longest Region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One rule of EventBridge."""

    name: str
    """Of the rule, behind the environment's name."""
    pattern: Pattern
    """Of the events."""
    paths: dict[str, str] = field(default_factory=dict[str, str])
    """Where in the event is what the message names: JSON path by placeholder."""
    text: str
    """The message, one line, with `<placeholder>`s; of a `counted` one, the alarm's."""
    source: str
    """Where AWS documents the event."""
    counted: bool = False
    """One event for each node, hundreds at once in a bad hour: they are counted and told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """Something that AWS sends no event about."""

    what: str
    instead: str
    """What tells of it."""


def watches(cluster: Cluster, *, stacks: str) -> list[Watch]:
    """The rules of a cluster.

    Args:
        cluster: what the environment comes to.
        stacks: how the ARN of a stack in its account begins, `arn:aws:cloudformation:...:stack/`; may hold
            tokens.
    """
    rows = [*_stacks(cluster, stacks), _health(cluster)]
    if cluster.traits.hyperpod:
        rows += _hyperpod(cluster)
    rows += _reservations(cluster)
    if any(group.capacity.kind == "spot" and not group.in_service for group in cluster.groups.values()):
        rows.append(_spot(cluster))
    if any(
        group.capacity.kind == "reservation" and group.capacity.takes_back
        for group in cluster.groups.values()
    ):
        rows.append(_reclaimed(cluster))
    if cluster.traits.kubernetes:
        rows.append(_auto_scaling(cluster))
    if isinstance(cluster.settings, ParallelCluster) and cluster.settings.monitoring.alarms:
        rows.append(_head_node(cluster))
    return rows


def _told(cluster: Cluster, text: str, run: str) -> str:
    return f"Ultracluster {cluster.name}: {text} Run: ultracluster {run}"


def _stacks(cluster: Cluster, stacks: str) -> Iterator[Watch]:
    """As many rules as the names need: one prefix for all would also match `prod-eu-network` for `prod`."""
    names = list(cluster.environment.stack_names)
    if cluster.traits.own_stack:
        names.append(cluster.cluster_name)
    for number, some in enumerate(_fitting(names), start=1):
        yield Watch(
            name="stacks" if number == 1 else f"stacks-{number}",
            pattern=_stack_pattern([f"{stacks}{name}/" for name in some]),
            paths={
                "stack": "$.detail.stack-id",
                "status": "$.detail.status-details.status",
                "why": "$.detail.status-details.status-reason",
            },
            text=_told(cluster, "stack <stack> is <status>. <why>", f"doctor {cluster.name}"),
            source="AWS CloudFormation User Guide, Stack Status Change event detail",
        )


def _stack_pattern(prefixes: list[str]) -> Pattern:
    return {
        "source": ["aws.cloudformation"],
        "detail-type": ["CloudFormation Stack Status Change"],
        "detail": {
            "stack-id": [{"prefix": prefix} for prefix in prefixes],
            "status-details": {"status": FAILED_STACKS},
        },
    }


def _fitting(names: list[str]) -> list[list[str]]:
    """The names in parts that each fit into one pattern, with the longest ARN that there is."""
    parts: list[list[str]] = [[]]
    for name in names:
        tried = [f"{'x' * LONGEST_ARN}{ending}/" for ending in (*parts[-1], name)]
        if len(json.dumps(_stack_pattern(tried), separators=(",", ":"))) > LONGEST_PATTERN:
            parts.append([])
        parts[-1].append(name)
    return parts


def _health(cluster: Cluster) -> Watch:
    """Of the whole account and Region: such an event names resources, and no cluster."""
    return Watch(
        name="aws-health",
        pattern={
            "source": ["aws.health"],
            "detail-type": ["AWS Health Event"],
            "detail": {
                "service": HEALTH_SERVICES,
                "eventTypeCategory": ["issue", "scheduledChange"],
                "eventRegion": [cluster.region, "global"],
                # the same once more, in the Region that backs another one up
                "backupEvent": [{"anything-but": ["true"]}, {"exists": False}],
                # what has ended is told by nobody: each update of an event that goes on is one more
                "statusCode": ["open", "upcoming"],
            },
        },
        paths={
            "code": "$.detail.eventTypeCode",
            "start": "$.detail.startTime",
            "what": "$.resources",
        },
        text=_told(
            cluster,
            "AWS Health reports <code> in this account and Region from <start>, for <what> (empty: no single "
            "resource).",
            f"nodes list {cluster.name}",
        ),
        source="AWS Health User Guide, AWS Health events Amazon EventBridge schema",
    )


def _hyperpod(cluster: Cluster) -> Iterator[Watch]:
    source = "SageMaker Developer Guide, SageMaker HyperPod cluster events reference"
    name, doctor = cluster.cluster_name, f"doctor {cluster.name}"
    yield Watch(
        name="hyperpod-state",
        pattern={
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker HyperPod Cluster State Change"],
            "detail": {"ClusterName": [name], "ClusterStatus": ["Failed", "RollingBack", "Deleting"]},
        },
        paths={"status": "$.detail.ClusterStatus", "why": "$.detail.FailureMessage"},
        text=_told(cluster, f"HyperPod cluster {name} is <status>. <why>", doctor),
        source=source,
    )
    yield Watch(
        name="hyperpod-node-health",
        pattern={
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker HyperPod Cluster Node Health Event"],
            "detail": {
                "ClusterName": [name],
                "HealthSummary": {"HealthStatus": [{"anything-but": ["Healthy"]}]},
            },
        },
        paths={
            "node": "$.detail.InstanceId",
            "status": "$.detail.HealthSummary.HealthStatus",
            "why": "$.detail.HealthSummary.HealthStatusReason",
            "action": "$.detail.HealthSummary.RepairAction",
        },
        text=_told(
            cluster,
            "node <node> is <status>; HyperPod's repair: <action>. <why> The fault table has cause and "
            "remedy.",
            doctor,
        ),
        source=source,
    )
    yield from _hyperpod_errors(cluster, source, doctor)


def _hyperpod_errors(cluster: Cluster, source: str, doctor: str) -> Iterator[Watch]:
    name = cluster.cluster_name
    yield Watch(
        name="hyperpod-errors",
        pattern=_hyperpod_error(name, "Cluster", "InstanceGroup"),
        paths={
            "group": "$.detail.EventDetails.InstanceGroupName",
            "what": "$.detail.EventDetails.Description",
        },
        text=_told(
            cluster, "HyperPod reports an error of group <group> (empty: the cluster). <what>", doctor
        ),
        source=source,
    )
    yield Watch(
        name="hyperpod-node-errors",
        pattern=_hyperpod_error(name, "Instance"),
        text=_told(
            cluster,
            f"HyperPod reports errors of nodes of {name}: not created, not replaced, or scripts that failed.",
            doctor,
        ),
        source=source,
        counted=True,
    )


def _hyperpod_error(name: str, *resources: str) -> Pattern:
    return {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker HyperPod Cluster Event"],
        "detail": {
            "EventDetails": {
                "ClusterName": [name],
                "EventLevel": ["Error"],
                "ResourceType": list(resources),
            }
        },
    }


def _reservations(cluster: Cluster) -> Iterator[Watch]:
    """What happens to reservations and Capacity Blocks that groups name. HyperPod's plans send no event."""
    ids = list(
        dict.fromkeys(
            reservation
            for group in cluster.groups.values()
            if not group.in_service and (reservation := getattr(group.capacity, "id", None))
        )
    )
    if not ids:
        return
    command = f"nodes list {cluster.name}"
    yield _capacity_blocks(cluster, ids, command)
    yield Watch(
        name="reservation-state",
        pattern={
            "source": ["aws.ec2"],
            "detail-type": [
                f"EC2 Capacity Reservation {state}"
                for state in ("Active", "Delayed", "Unsupported", "Failed", "Expired")
            ],
            "detail": {"capacity-reservation-id": ids},
        },
        paths={"id": "$.detail.capacity-reservation-id", "state": "$.detail.state"},
        text=_told(cluster, "capacity reservation <id> is <state>.", command),
        source="Amazon EC2 User Guide, Monitor state changes for future-dated Capacity Reservations",
    )
    yield Watch(
        name="reservation-unused",
        pattern={
            "source": ["aws.health"],
            "detail-type": ["AWS Health Event"],
            "resources": ids,
            "detail": {"eventTypeCode": [{"prefix": "AWS_EC2_ODCR_UNDERUTILIZATION_NOTIFICATION"}]},
        },
        paths={"what": "$.resources"},
        text=_told(cluster, "<what> is paid for and less than 20 % of it is used.", command),
        source="Amazon EC2 User Guide, Monitor Capacity Reservations usage with EventBridge",
    )


def _capacity_blocks(cluster: Cluster, ids: list[str], command: str) -> Watch:
    return Watch(
        name="capacity-block",
        pattern={
            "source": ["aws.ec2"],
            # the guide writes the two without EC2 in front, and all others with it
            "detail-type": [
                {"suffix": "Capacity Block Reservation Delivered"},
                {"suffix": "Capacity Block Reservation Expiration Warning"},
            ],
            "detail": {"capacity-reservation-id": ids},
        },
        paths={
            "what": "$.detail-type",
            "block": "$.detail.capacity-reservation-id",
            "end": "$.detail.end-date",
        },
        text=_told(
            cluster,
            "<what>: block <block> ends <end>; instances go from 30 minutes before: save a checkpoint.",
            command,
        ),
        source="Amazon EC2 User Guide, Monitor Capacity Blocks using EventBridge",
    )


def _spot(cluster: Cluster) -> Watch:
    """Of the whole account: the event has the instance's id, and neither tags nor cluster."""
    return Watch(
        name="spot-interruption",
        pattern={
            "source": ["aws.ec2"],
            "detail-type": [
                "EC2 Spot Instance Interruption Warning",
                "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
            ],
        },
        text=_told(
            cluster,
            "EC2 takes Spot instances of this account back, with two minutes' notice.",
            f"nodes list {cluster.name}",
        ),
        source="Amazon EC2 User Guide, Spot Instance interruption notices",
        counted=True,
    )


def _reclaimed(cluster: Cluster) -> Watch:
    """Of the whole account: the event has the instance's id, and neither reservation nor cluster."""
    return Watch(
        name="reservation-interruption",
        pattern={
            "source": ["aws.ec2"],
            # the guide's page on Spot names the same event with Interruptible in the middle
            "detail-type": [{"suffix": "Capacity Reservation Instance Interruption Warning"}],
        },
        text=_told(
            cluster,
            "the owner of an interruptible reservation takes its instances back from this account, with two "
            "minutes' notice.",
            f"nodes list {cluster.name}",
        ),
        source="Amazon EC2 User Guide, Monitor interruptible Capacity Reservations with EventBridge and "
        "CloudTrail",
        counted=True,
    )


def _auto_scaling(cluster: Cluster) -> Watch:
    """Of all managed node groups of the account: EKS names their Auto Scaling groups, with a random end."""
    return Watch(
        name="launch-failures",
        pattern={
            "source": ["aws.autoscaling"],
            "detail-type": ["EC2 Instance Launch Unsuccessful"],
            "detail": {"AutoScalingGroupName": [{"prefix": "eks-"}]},
        },
        text=_told(
            cluster,
            "EC2 Auto Scaling could not launch instances of a managed node group of this account.",
            f"doctor {cluster.name}",
        ),
        source="Amazon EC2 Auto Scaling User Guide, EC2 Auto Scaling event reference",
        counted=True,
    )


def _head_node(cluster: Cluster) -> Watch:
    """The alarms that ParallelCluster makes have no action of their own."""
    name = f"{cluster.cluster_name}-HeadNode"
    return Watch(
        name="head-node",
        pattern={
            "source": ["aws.cloudwatch"],
            "detail-type": ["CloudWatch Alarm State Change"],
            "detail": {"alarmName": [name], "state": {"value": ["ALARM"]}},
        },
        paths={"why": "$.detail.state.reason"},
        text=_told(cluster, f"alarm {name}: <why>", f"doctor {cluster.name}"),
        source="Amazon CloudWatch User Guide, Alarm events and EventBridge; aws-parallelcluster 3.16.1, "
        "templates/cluster_stack.py",
    )


SILENT = (
    Silent(
        what="GPU faults on HyperPod Slurm",
        instead="the metric filter on the health monitoring agent's log: AWS's pages differ on whether these "
        "clusters send node health events, so the rule is there, too",
    ),
    Silent(
        what="HyperPod clusters that are not provisioned continuously: events of groups and nodes",
        instead="state changes of the cluster, which are sent, and the metric filters on its log",
    ),
    Silent(
        what="the end of a HyperPod training plan",
        instead="the alert on the lease's end and the nodes' own warning (docs/operations.md)",
    ),
    Silent(
        what="AWS PCS: clusters, queues and nodes",
        instead="its scaling log, which is delivered here, with metric filters for launches and first boots "
        "that failed",
    ),
    Silent(
        what="a data repository association that becomes MISCONFIGURED, or a file that is not exported",
        instead="the alarms on the age of the oldest queued message, the filter on Lustre's log where "
        "`log_level` asks for one, and `ultracluster preflight`",
    ),
    Silent(what="FSx file systems that fill up", instead="the alarms on capacity"),
    Silent(
        what="EKS control planes, nodes and add-ons",
        instead="the stacks' events while they are deployed, AWS Health, and the alerts on nodes and pods",
    ),
    Silent(
        what="conditions and events that agents set on nodes of EKS: they stay in Kubernetes",
        instead="the alerts on Xids, and `ultracluster doctor`, both with the rows of the fault table "
        "(docs/faults.md)",
    ),
    Silent(
        what="Karpenter's nodes",
        instead="Karpenter reads EC2's warnings from a queue of its own and acts on them",
    ),
    Silent(
        what="ParallelCluster: queues and nodes",
        instead="the events of its stack, the alarms that it makes on its head node, and alarms on the "
        "metrics that it makes of its logs",
    ),
    Silent(
        what="a key that is scheduled for deletion",
        instead="CloudTrail only (`ScheduleKeyDeletion`), where a trail records management events",
    ),
    Silent(
        what="an image that was built or not",
        instead="the image pipeline's own topic (docs/own-images.md)",
    ),
)
"""What AWS sends no event about, and what tells of it here."""
