"""Rules on node groups: where their nodes come from."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import is_local_zone
from ultracluster.config.capacity import STAND_IN, CapacityBlock, Reservation
from ultracluster.config.remedy import Remedy, ask, beside, drop, write
from ultracluster.model import Group
from ultracluster.model.capacity import Decision, decide, fabric_of
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import GRP, kinds_with
from ultracluster.rules.sources import PCS_GUIDE
from ultracluster.rules.today import today

DATE = "2026-11-21"
TABLE = f"{PCS_GUIDE}, Amazon EC2 capacity; model/capacity.json names the source of each decision"
CAPACITY = ("capacity",)


@GRP.error(20, TABLE, DATE)
def capacity_accepted(group: Group) -> Breaches:
    """The orchestrator can launch nodes from the kind of capacity.

    What HyperPod's own groups take is reported by HYP020 and HYP021.
    """
    for decision in _decisions(group):
        if decision.severity == "error" and not group.in_service:
            yield Breach(CAPACITY, decision.reason, _remedy(decision))


@GRP.warning(
    21,
    TABLE,
    DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].SupportedUsageClasses'",
)
def capacity_sold(group: Group) -> Breaches:
    """AWS sells the instance type by the kind of capacity."""
    yield from _warnings(group, "GRP021")


@GRP.error(76, "EC2 User Guide, Capacity Reservations in Local Zones (Considerations)", "2026-11-27")
def reservation_group_in_local_zone(group: Group) -> Breaches:
    """A reservation in a Local Zone is named by its id."""
    capacity = group.capacity
    if isinstance(capacity, Reservation) and capacity.resource_group_arn and is_local_zone(group.zone_id):
        yield at(*CAPACITY, "resource_group_arn").breach(
            f"{group.zone_id} is a Local Zone, where EC2 has no groups of Capacity Reservations.",
            drop() & beside(id=STAND_IN).noting("with the id of your reservation"),
        )


@GRP.warning(
    22,
    "EC2 User Guide, Spot Instance interruptions; "
    "SageMaker Developer Guide, Spot instances in Amazon SageMaker HyperPod",
    DATE,
    kinds=kinds_with(lambda traits: traits.slurm and not traits.validates),  # PCL022
)
def spot_for_compute(group: Group) -> Breaches:
    """Controller and login nodes are not on capacity that is taken back."""
    if group.capacity.takes_back and group.role in ("controller", "login"):
        lost = "stops the queue" if group.role == "controller" else "ends people's sessions"
        who = "AWS takes Spot instances" if group.capacity.kind == "spot" else "Its owner takes a reservation"
        yield at(*CAPACITY).breach(
            f"{who} back at two minutes' notice, and losing a {group.role} node {lost}.",
            write({"kind": "on-demand"}),
        )


@GRP.warning(
    23,
    "EC2 and SageMaker price lists (third-party records, 2026-07 to 2026-10); "
    "model/capacity.json names the source of each decision",
    DATE,
    by_hand="aws pricing get-products --region us-east-1 --service-code AmazonEC2 --filters "
    "Type=TERM_MATCH,Field=instanceType,Value=<type> Type=TERM_MATCH,Field=regionCode,Value=<region> "
    "Type=TERM_MATCH,Field=marketoption,Value=OnDemand (HyperPod: AmazonSageMaker, "
    "Field=instanceName,Value=ml.<type>)",
)
def on_demand_sold(group: Group) -> Breaches:
    """AWS sells the instance type on demand."""
    yield from _warnings(group, "GRP023")


@GRP.warning(
    70,
    "EKS API reference, Nodegroup (capacityType); EC2 User Guide, Interruptible Capacity Reservations "
    "for capacity consumers; model/capacity.json names the source of each decision",
    "2026-11-23",
)
def capacity_described(group: Group) -> Breaches:
    """The guide of the orchestrator describes the kind of capacity."""
    if not group.by_karpenter:  # which takes them from 1.10 on
        yield from _warnings(group, "GRP070")


@GRP.warning(
    24,
    f"EKS User Guide, Create a managed node group with Capacity Blocks for ML; {PCS_GUIDE}, "
    "Amazon EC2 Capacity Blocks for ML",
    "2026-11-22",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[State,StartDate]'",
    # ParallelCluster itself keeps such nodes out until the block begins
    kinds=kinds_with(lambda traits: traits.until_block is not None),
)
def block_not_begun(group: Group) -> Breaches:
    """A Capacity Block has begun before its nodes are launched."""
    block, count = group.capacity, group.settings.count
    if (
        not isinstance(block, CapacityBlock)
        or not count
        or (group.traits.until_block == "fills-later" and block.starts)
    ):
        return
    if group.by_karpenter:
        return  # its pools wait for instances without failing
    yield at(*CAPACITY).breach(
        f"the block {block.id} has no instances before it begins: creating the group would wait for "
        f"{count} nodes, fail and be rolled back.",
        _not_yet(group),
    )


@GRP.warning(
    35,
    "docs/kubernetes.md, A Capacity Block that has not begun; EventBridge Scheduler was reported to "
    "refuse a time in the past (DefangLabs/pulumi-defang#425)",
    "2026-11-22",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[State,StartDate]'",
    kinds=kinds_with(lambda traits: traits.until_block == "fills-later"),
)
def block_start_in_future(block: CapacityBlock) -> Breaches:
    """`starts` of a Capacity Block lies in the future."""
    if block.starts and block.starts[:10] < today().isoformat():
        yield at("starts").breach(
            f"{block.starts} is in the past: a new group would be created empty and its schedule refused; an "
            "existing group starts again from 0 nodes when its size changes.",
            drop().noting("the nodes are then launched at once"),
        )


@GRP.warning(
    36, "EC2 User Guide, Placement strategies for your placement groups; Elastic Fabric Adapter", "2026-11-22"
)
def placement_group_declined(group: Group) -> Breaches:
    """Nodes that train together are in one placement group."""
    if group.in_service or group.role != "compute" or group.settings.placement_group != "none":
        return
    ours = group.capacity.kind in ("on-demand", "spot")
    if ours and group.type and fabric_of(group.type) == "efa":
        yield at("placement_group").breach(
            f"{group.type.name} has EFA, and without a cluster placement group EC2 may spread the nodes over "
            "the whole zone: each collective operation waits for its slowest link.",
            drop().noting("or acknowledge this where EC2 has no room for all nodes in one group"),
        )


@GRP.error(37, "EC2 User Guide, Use Capacity Reservations with cluster placement groups", "2026-11-22")
def placement_group_contradicts(group: Group) -> Breaches:
    """`placement_group: none` does not contradict the placement group of the reservation."""
    capacity = group.capacity
    named = capacity.placement_group if isinstance(capacity, Reservation) else None
    if group.settings.placement_group == "none" and named:
        yield at("placement_group").breach(
            f"the reservation belongs to the placement group {named}: instances outside that group do not "
            "match it.",
            drop(),
        )


def _warnings(group: Group, rule: str) -> Breaches:
    for decision in _decisions(group):
        if decision.severity == "warning" and decision.rule == rule:
            yield Breach(CAPACITY, decision.reason, _remedy(decision))


def _decisions(group: Group) -> Iterator[Decision]:
    """One for each type of the group: each is bought separately."""
    if group.traits.validates and group.role != "compute":
        return  # reported by PCL022: the file has no field for it
    if group.capacity.kind == "training-plan" and group.traits.hyperpod and not group.in_service:
        return  # reported by HYP025
    capacity, placement = group.capacity, group.placement.kind if group.placement else "none"
    if isinstance(capacity, Reservation):
        if capacity.id and capacity.resource_group_arn:
            return  # reported by GRP004
        placement = "reservation-group" if capacity.placement_group and not group.in_service else "none"
    for kind in filter(None, group.types):
        yield decide(capacity, orchestrator=group.launcher, placement=placement, instance_type=kind)


def _remedy(decision: Decision) -> Remedy:
    """The table's words; on demand where it names that. Ids and ARNs are the user's."""
    if "{kind: on-demand}" in decision.instead:
        others = decision.instead.replace("capacity: {kind: on-demand}, or ", "or ")
        return write({"kind": "on-demand"}).noting(others)
    return ask("fact", decision.instead)


def _not_yet(group: Group) -> Remedy:
    """No compute nodes until the block begins; the other roles have no nodes that come and go."""
    begun = "acknowledge this where it has begun"
    if group.role != "compute":
        return ask("action", f"deploy when it begins; {begun}")
    starts = "raise count when it begins; "
    if group.traits.until_block == "fills-later":
        starts += 'or starts: "<StartDate of the block>" next to its id; '
    return beside(count=0, max_count=group.settings.max_nodes).noting(starts + begun)
