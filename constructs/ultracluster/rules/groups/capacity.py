"""Rules on: node groups. Where their nodes come from."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, OrchestratorKind
from ultracluster.config.remedy import Remedy, ask, beside, drop, write
from ultracluster.model.capacity import Decision, decide, fabric_of, placement_for
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod.groups import typed_groups
from ultracluster.rules.sets import GRP
from ultracluster.rules.today import today

DATE = "2026-11-21"
TABLE = "AWS PCS User Guide, Amazon EC2 capacity; model/capacity.json names the source of each decision"
EC2 = frozenset[OrchestratorKind]({"parallelcluster", "pcs", "eks"})
"""Nodes are launched from EC2 in this account."""


@GRP.rule(
    20,
    "error",
    "The capacity is one that nodes can be launched from",
    source=TABLE,
    date=DATE,
    kinds=EC2,
)
def capacity_refused(environment: Environment) -> Iterator[Breach]:
    for path, decision in _decisions(environment):
        if decision.severity == "error":
            yield Breach(path, decision.reason, _remedy(decision))


@GRP.rule(
    21,
    "warning",
    "The capacity is sold for the type",
    source=TABLE,
    date=DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].SupportedUsageClasses'",
    kinds=EC2,
)
def capacity_unsold(environment: Environment) -> Iterator[Breach]:
    yield from _warnings(environment, "GRP021")


@GRP.rule(
    22,
    "warning",
    "Controller and login nodes are not Spot",
    source="EC2 User Guide, Spot Instance interruptions; "
    "SageMaker Developer Guide, Spot instances in Amazon SageMaker HyperPod",
    date=DATE,
    kinds=frozenset({"hyperpod-slurm", "pcs"}),  # ParallelCluster has no field for it: PCL022
)
def spot_for_compute(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot" and group.role in ("controller", "login"):
            lost = "the queue stops" if group.role == "controller" else "people are thrown out"
            yield Breach(
                ("node_groups", name, "capacity"),
                f"AWS takes Spot instances back at two minutes' notice: without the {group.role} {lost}.",
                write({"kind": "on-demand"}),
            )


@GRP.rule(
    23,
    "warning",
    "On-demand capacity is sold for the type",
    source="EC2 and SageMaker price lists (third-party records, 2026-07 to 2026-10); "
    "model/capacity.json names the source of each decision",
    date=DATE,
    by_hand="aws pricing get-products --region us-east-1 --service-code AmazonEC2 --filters "
    "Type=TERM_MATCH,Field=instanceType,Value=<type> Type=TERM_MATCH,Field=regionCode,Value=<region> "
    "Type=TERM_MATCH,Field=marketoption,Value=OnDemand (HyperPod: AmazonSageMaker, "
    "Field=instanceName,Value=ml.<type>)",
    kinds=EC2 | HYPERPOD,
)
def on_demand_unsold(environment: Environment) -> Iterator[Breach]:
    yield from _warnings(environment, "GRP023")


@GRP.rule(
    24,
    "warning",
    "A Capacity Block has begun when its nodes are made",
    source="EKS User Guide, Create a managed node group with Capacity Blocks for ML; AWS PCS User Guide, "
    "Amazon EC2 Capacity Blocks for ML",
    date="2026-11-22",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[State,StartDate]'",
    kinds=frozenset({"eks", "pcs"}),  # ParallelCluster itself keeps such nodes out until the block begins
)
def block_has_begun(environment: Environment) -> Iterator[Breach]:
    eks = environment.orchestrator.kind == "eks"
    karpenter = getattr(environment.orchestrator, "karpenter", None)
    for name, group in environment.node_groups.items():
        block = group.capacity
        if not isinstance(block, CapacityBlock) or not group.count or (eks and block.starts):
            continue
        if karpenter and name in karpenter.groups:
            continue  # its pools wait for instances and fail nothing
        yield Breach(
            ("node_groups", name, "capacity"),
            f"the block {block.id} has no instances before it begins: the group would wait for {group.count} "
            "nodes, fail, and be taken back.",
            _not_yet(environment, group),
        )


@GRP.rule(
    35,
    "warning",
    "The time at which a block begins is still to come",
    source="docs/kubernetes.md, A Capacity Block that has not begun; EventBridge Scheduler was reported to "
    "refuse a time in the past (DefangLabs/pulumi-defang#425)",
    date="2026-11-22",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[State,StartDate]'",
    kinds=frozenset({"eks"}),
)
def block_begins_later(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        block = group.capacity
        if isinstance(block, CapacityBlock) and block.starts and block.starts[:10] < today().isoformat():
            yield Breach(
                ("node_groups", name, "capacity", "starts"),
                f"{block.starts} is past: a group that is new would be made empty and its schedule refused, "
                "one that is there begins at 0 again when its size changes.",
                drop().noting("the nodes are then launched at once"),
            )


@GRP.rule(
    36,
    "warning",
    "Nodes that train together are placed close together",
    source="EC2 User Guide, Placement strategies for your placement groups; Elastic Fabric Adapter",
    date="2026-11-22",
    kinds=EC2,
)
def placement_declined(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        ours = group.capacity.kind in ("on-demand", "spot")
        if group.placement_group == "none" and ours and known and fabric_of(known) == "efa":
            yield Breach(
                ("node_groups", name, "placement_group"),
                f"{known.name} has EFA, and without a cluster placement group EC2 may spread its nodes over "
                "the zone: each collective operation waits for the longest way.",
                drop().noting("or acknowledge this where EC2 has no room for all nodes in one group"),
            )


@GRP.rule(
    37,
    "error",
    "A placement group is declined or named, not both",
    source="EC2 User Guide, Use Capacity Reservations with cluster placement groups",
    date="2026-11-22",
)
def placement_declined_and_named(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        named = group.capacity.placement_group if isinstance(group.capacity, Reservation) else None
        if group.placement_group == "none" and named:
            yield Breach(
                ("node_groups", name, "placement_group"),
                f"the reservation was made in the placement group {named}, and instances outside it do not "
                "get it.",
                drop(),
            )


def _warnings(environment: Environment, rule: str) -> Iterator[Breach]:
    for path, decision in _decisions(environment):
        if decision.severity == "warning" and decision.rule == rule:
            yield Breach(path, decision.reason, _remedy(decision))


def _decisions(environment: Environment) -> Iterator[tuple[Path, Decision]]:
    kind = environment.orchestrator.kind
    if kind in HYPERPOD:
        # each type of a group that has several is bought by itself
        for path, group, known in typed_groups(environment):
            decision = decide(group.capacity, orchestrator=kind, placement="none", instance_type=known)
            yield (*path[:2], "capacity"), decision
        return
    for name, group in environment.node_groups.items():
        if decision := _decision(environment, group):
            yield ("node_groups", name, "capacity"), decision


def _decision(environment: Environment, group: NodeGroup) -> Decision | None:
    kind, capacity = environment.orchestrator.kind, group.capacity
    known = instance_type_of(environment, group)
    if known is None or (kind == "parallelcluster" and group.role != "compute"):
        return None  # ParallelCluster launches its other nodes on demand: PCL022
    placement = "reservation-group"
    if not isinstance(capacity, Reservation):
        declined = group.placement_group == "none"
        placement = placement_for(capacity, instance_type=known, orchestrator=kind, declined=declined).kind
    elif capacity.id and capacity.resource_group_arn:
        return None  # GRP004 speaks
    elif not capacity.placement_group:
        placement = "none"
    return decide(capacity, orchestrator=kind, placement=placement, instance_type=known)


def _remedy(decision: Decision) -> Remedy:
    """The table's words; on demand where it names that. Ids and ARNs are the user's."""
    if "{kind: on-demand}" in decision.instead:
        others = decision.instead.replace("capacity: {kind: on-demand}, or ", "or ")
        return write({"kind": "on-demand"}).noting(others)
    return ask("fact", decision.instead)


def _not_yet(environment: Environment, group: NodeGroup) -> Remedy:
    """No nodes until the block begins; ParallelCluster requires all nodes of a block to be there always."""
    begun = "acknowledge this where it has begun"
    if environment.orchestrator.kind == "parallelcluster" or group.role != "compute":
        return ask("action", f"deploy when it begins; {begun}")
    starts = "raise count when it begins; " + (
        'or starts: "<StartDate of the block>" beside its id; '
        if environment.orchestrator.kind == "eks"
        else ""
    )
    return beside(count=0, max_count=group.greatest).noting(starts + begun)
