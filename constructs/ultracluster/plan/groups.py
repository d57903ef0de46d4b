"""Node groups in figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ultracluster.catalog import InstanceType
from ultracluster.catalog.sizing import AcceleratorDomain, accelerator_domain
from ultracluster.config.capacity import (
    Capacity,
    CapacityBlock,
    OnDemand,
    Reservation,
    Spot,
    TrainingPlan,
)
from ultracluster.config.nodes import AutomaticPatching, Patching, ScheduledPatching
from ultracluster.model import Group
from ultracluster.model.network_cards import network_card_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """One node group in figures, with all nodes it may have. None is unknown."""

    name: str
    role: str
    instance_type: str
    count: int
    """Nodes that are always there."""
    greatest: int
    """Nodes that there may be."""
    capacity: str
    """Kind of capacity: `on-demand`, `training-plan` ...; `interruptible reservation` of one that is lent."""
    capacity_id: str
    """Id or ARN of what is reserved; empty without one."""
    placement: str
    """`hyperpod` where that places the nodes; else the placement group: `cluster`, `reservation-group` (that
    of the reservation) or `none`. Empty where it makes no difference."""
    vcpu: int | None
    memory_gib: float | None
    """Main memory of all nodes in GiB."""
    accelerator: str
    """Name of one; empty without."""
    accelerators: int
    accelerator_memory_gib: float
    """GiB over all nodes."""
    domain: AcceleratorDomain | None
    efa_interfaces: int | None
    """EFA interfaces of one node."""
    efa_gbps_per_node: float | None
    """Gbit/s; 0 without EFA."""
    efa_generation: int | None
    """3 is EFA v3; None also where AWS does not publish it."""
    ultracluster: int | None
    """Generation of EC2 UltraClusters; None where AWS does not publish it."""
    zone_id: str
    """Of its nodes."""
    further_types: Sequence[str]
    """Types that it may have instead, in this order."""
    image_release: str
    """Release of HyperPod's image that it is pinned to; empty without a pin."""
    updates: str
    """When its software is updated by itself, in words; empty where that is done by hand."""
    restricted: bool
    """Only images of AWS's that customise Amazon Nova run there."""

    @property
    def efa_gbps(self) -> float | None:
        """EFA bandwidth of all nodes in Gbit/s."""
        return None if self.efa_gbps_per_node is None else self.efa_gbps_per_node * self.greatest

    @property
    def domains(self) -> int | None:
        """Domains of all nodes; a job that stays in one does not need the network for its collectives."""
        return self.accelerators // self.domain.size if self.domain else None

    @property
    def nodes(self) -> str:
        """`16 x TYPE`, `0-4 x TYPE`."""
        number = f"{self.count}-{self.greatest}" if self.greatest > self.count else str(self.count)
        return f"{number} x {self.instance_type}"


def group_notes(group: GroupPlan, home: str) -> tuple[str, ...]:
    """What is special about a group, each in one line.

    Args:
        home: zone of the environment.
    """
    notes = (
        f"is in {group.zone_id}" if group.zone_id != home else "",
        f"may also be {', '.join(group.further_types)}, in this order" if group.further_types else "",
        "is restricted: only AWS's images for Amazon Nova run there" if group.restricted else "",
        f"is pinned to {group.image_release} of HyperPod's image" if group.image_release else "",
        group.updates,
    )
    return tuple(f"{group.name} {note}" for note in notes if note)


def bandwidth(gbps: float | None) -> str:
    """Gbit/s, or Tbit/s from ten thousand on."""
    if gbps is None:
        return "?"
    if gbps == 0:
        return "-"
    return f"{gbps:,.0f} Gbit/s" if gbps < 10_000 else f"{gbps / 1000:,.1f} Tbit/s"


def group_plan(group: Group) -> GroupPlan:
    """A node group in figures; what is unknown of its type is None."""
    instance_type, nodes = group.type, group.most_nodes
    accelerator = instance_type.accelerator if instance_type else None
    interfaces, gbps = _efa(instance_type)
    return GroupPlan(
        name=group.name,
        role=group.role,
        instance_type=group.settings.instance_type,
        count=group.settings.count,
        greatest=nodes,
        capacity=_capacity_kind(group.capacity),
        capacity_id=_capacity_id(group.capacity),
        placement=_placement(group),
        vcpu=instance_type.vcpu * nodes if instance_type and instance_type.vcpu else None,
        memory_gib=instance_type.memory_gib * nodes if instance_type and instance_type.memory_gib else None,
        accelerator=accelerator.name if accelerator else "",
        accelerators=accelerator.count * nodes if accelerator else 0,
        accelerator_memory_gib=accelerator.memory_gib * nodes if accelerator else 0,
        domain=accelerator_domain(instance_type, nodes) if instance_type else None,
        efa_interfaces=interfaces,
        efa_gbps_per_node=gbps,
        efa_generation=instance_type.efa_generation if instance_type and interfaces != 0 else None,
        ultracluster=instance_type.ultracluster if instance_type else None,
        zone_id=group.zone_id,
        further_types=group.settings.instance_types,
        image_release=group.settings.image_release or "",
        updates=_updates(group.settings.patching),
        restricted=group.restricted is not None,
    )


def _updates(patching: Patching | None) -> str:
    match patching:
        case None:
            return ""
        case ScheduledPatching():
            words = f"is updated at {patching.schedule} UTC"
        case AutomaticPatching():
            when = "each node is" if patching.kind == "when-idle" else "all nodes are"
            words = f"is patched when {when} idle"
        case _ as never:
            assert_never(never)
    if patching.batch_percent:
        words += f", {patching.batch_percent} % at a time"
    if patching.rollback_alarms:
        words += f", rolled back by {', '.join(patching.rollback_alarms)}"
    return words


def _efa(instance_type: InstanceType | None) -> tuple[int | None, float | None]:
    """EFA interfaces of one node and what they carry together."""
    if instance_type is None:
        return None, None
    if instance_type.efa_interfaces == 0:
        return 0, 0
    try:
        shares = [one.gbps for one in network_card_plan(instance_type) if one.kind == "efa-only"]
    except ValueError:  # its cards are unknown: only the instance's own figure is known
        return instance_type.efa_interfaces, instance_type.network_gbps
    found = [share for share in shares if share is not None]
    return len(shares), sum(found) if len(found) == len(shares) else instance_type.network_gbps


def _placement(group: Group) -> str:
    if group.role != "compute" or group.type is None:
        return ""
    if group.in_service:
        return "hyperpod"
    return group.placement.kind if group.placement else ""


def _capacity_kind(capacity: Capacity) -> str:
    lent = isinstance(capacity, Reservation) and capacity.interruptible
    return f"interruptible {capacity.kind}" if lent else capacity.kind


def _capacity_id(capacity: Capacity) -> str:
    """Id or ARN of what is reserved; empty without one."""
    match capacity:
        case OnDemand() | Spot():
            return ""
        case Reservation():
            return capacity.id or capacity.resource_group_arn or ""
        case CapacityBlock():
            return capacity.id
        case TrainingPlan():
            return capacity.arn
        case _ as never:
            assert_never(never)
