"""Where instances can come from, under which orchestrator and in which placement: one table, `capacity.json`.

Nothing here needs the CDK: rules and commands ask the same table as the constructs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal

from ultracluster.catalog import InstanceType
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.config.environment import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model.orchestrators import TRAITS

Capacity = OnDemand | Spot | Reservation | CapacityBlock | TrainingPlan
CapacityForm = Literal[
    "on-demand",
    "spot",
    "reservation-open",
    "reservation-id",
    "reservation-resource-group",
    "reservation-interruptible",
    "capacity-block",
    "training-plan",
]
Launcher = Literal[OrchestratorKind, "ec2"]
"""An orchestrator; "ec2" is only a launch template (an Auto Scaling group, a fleet, `run-instances`)."""
PlacementKind = Literal["none", "cluster", "reservation-group"]
"""No placement group; a cluster placement group; the group in which the reservation was made."""
Fabric = Literal["none", "efa", "ultraserver"]
"""What connects instances of a type: only TCP, EFA, or EFA and the UltraServer's own."""

LINUX = "Linux/UNIX"
RED_HAT = "Red Hat Enterprise Linux"
"""Platforms of a reservation, as the EC2 API has them; they are those that an image is billed as."""

_HYPERPOD = tuple(kind for kind, traits in TRAITS.items() if traits.hyperpod)
_SERVICE_ASKS_FOR_SPOT = tuple(kind for kind, traits in TRAITS.items() if not traits.hyperpod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One cell of the table."""

    id: str
    """Which decision of `capacity.json` it is."""
    legal: bool
    """Whether it can be launched, by what is known."""
    severity: Literal["error", "warning"] | None
    """None when legal. A warning is a refusal by the catalogue only, which may be older than AWS's offer."""
    reason: str
    """Why, in one or two sentences."""
    instead: str
    """What to do instead; empty when legal."""
    source: str
    """Where AWS, or a measurement, says so."""
    rule: str
    """The rule that reports it in an environment file; empty if none does."""
    purchase: str
    """What the orchestrator's own field is set to (HyperPod's instance group, CapacityType, PurchaseOption,
    MarketType); empty when refused, or when the field is left out."""

    @property
    def message(self) -> str:
        """The reason, and what to do instead."""
        return f"{self.reason} Instead: {self.instead}." if self.instead else self.reason


def decide(
    capacity: Capacity,
    *,
    orchestrator: Launcher,
    placement: PlacementKind,
    instance_type: InstanceType,
) -> Decision:
    """Whether `capacity` can be used so, and if not, why and what to do instead.

    Args:
        capacity: where the instances come from.
        orchestrator: who launches them.
        placement: the placement group they are launched into; `placement_for` names the right one.
        instance_type: from the catalogue.

    Raises:
        ValueError: the reservation names an id and a resource group.
    """
    form = capacity_form(capacity)
    is_sold = sold(form, instance_type, orchestrator=orchestrator)
    row = _row(form, orchestrator, placement, fabric_of(instance_type), is_sold)
    words = {
        "type": instance_type.name,
        "orchestrator": orchestrator,
        "reservation": _reservation(capacity),
    }
    legal = row["verdict"] == "legal"
    return Decision(
        id=row["id"],
        legal=legal,
        severity=None if legal else row["verdict"],
        reason=Template(row["reason"]).substitute(words),
        instead=Template(row.get("instead", "")).substitute(words),
        source=row["source"],
        rule=row.get("rule", ""),
        # a warning can be acknowledged, and then it is this capacity that is asked for, not another
        purchase="" if row["verdict"] == "error" else _purchase(orchestrator, form, capacity.kind),
    )


def _purchase(orchestrator: Launcher, form: CapacityForm, kind: str) -> str:
    """Of the form where it has a word of its own, else of the kind."""
    own: Mapping[str, str] = _table()["purchase"][orchestrator]
    return own[form] if form in own else own[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What placement a node group is launched with, and why."""

    kind: PlacementKind
    reason: str
    source: str


def placement_for(
    capacity: Capacity,
    *,
    instance_type: InstanceType,
    orchestrator: Launcher = "ec2",
    reserved_in_group: bool = False,
    declined: bool = False,
) -> Placement:
    """The placement that fits: a group where it helps, none where it would lose the capacity.

    The wrong one costs the whole cluster: instances launched into a group never match a reservation or block
    that was made outside it. Legal by `decide` wherever any placement is.

    Args:
        capacity: where the instances come from.
        instance_type: from the catalogue; only types with EFA gain by a group.
        orchestrator: who launches them; HyperPod places its nodes itself.
        reserved_in_group: the reservation was made in a placement group (it has a `PlacementGroupArn`), which
            must then be named.
        declined: no group is to be made of our own.

    Raises:
        ValueError: `reserved_in_group` without a reservation, or where no group can be named.
    """
    if reserved_in_group and capacity.kind != "reservation":
        raise ValueError(f"reserved_in_group goes with a reservation, not with {capacity.kind}")
    kind: PlacementKind = "none"
    if reserved_in_group:
        kind = "reservation-group"
    elif orchestrator not in _HYPERPOD and capacity.kind in ("on-demand", "spot"):
        kind = "cluster" if fabric_of(instance_type) == "efa" and not declined else "none"
    decision = decide(capacity, orchestrator=orchestrator, placement=kind, instance_type=instance_type)
    if reserved_in_group and decision.severity == "error":
        raise ValueError(decision.message)
    return Placement(kind=kind, reason=decision.reason, source=decision.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOptions:
    """How a launch template asks EC2 for its capacity."""

    market_type: Literal["spot", "capacity-block", "interruptible-capacity-reservation"] | None = None
    """InstanceMarketOptions.MarketType."""
    reservation_id: str | None = None
    """CapacityReservationTarget.CapacityReservationId, of a reservation or a block."""
    resource_group_arn: str | None = None
    """CapacityReservationTarget.CapacityReservationResourceGroupArn."""
    preference: Literal["open"] | None = None
    """CapacityReservationPreference: "open" runs in any open reservation that matches, else on demand."""


def market_options(capacity: Capacity, *, orchestrator: Launcher = "ec2") -> MarketOptions:
    """What of `capacity` a launch template says.

    Spot is left to the orchestrators that ask for it in a field of their own (EKS User Guide, "Customize
    managed nodes with launch templates"; AWS PCS, PurchaseOption).

    Raises:
        ValueError: a training plan, or HyperPod, which takes no launch template; or a reservation with an id
            and a resource group, or an interruptible one without an id.
    """
    capacity_form(capacity)
    if orchestrator in _HYPERPOD or isinstance(capacity, TrainingPlan):
        raise ValueError("HyperPod and its training plans take no launch template")
    match capacity:
        case Spot():
            return MarketOptions(market_type=None if orchestrator in _SERVICE_ASKS_FOR_SPOT else "spot")
        case CapacityBlock():
            return MarketOptions(market_type="capacity-block", reservation_id=capacity.id)
        case Reservation(interruptible=True, id=None):
            raise ValueError("an interruptible reservation is targeted by its id: nothing else matches it")
        case Reservation(interruptible=True):
            return MarketOptions(market_type="interruptible-capacity-reservation", reservation_id=capacity.id)
        case Reservation(id=None, resource_group_arn=None):
            return MarketOptions(preference="open")
        case Reservation():
            return MarketOptions(reservation_id=capacity.id, resource_group_arn=capacity.resource_group_arn)
        case OnDemand():
            return MarketOptions()


def most_instances(of: Literal["per_block", "all_blocks", "per_plan"]) -> int:
    """Instances that one Capacity Block, all blocks on one day, or one training plan hold at most."""
    return int(_table()["limits"][of])


def sold_nodes(kind: Literal["capacity-block", "training-plan"], count: int) -> int:
    """The least number of instances of one block or plan that holds so many; the largest where none does.

    UltraServers are sold by whole ones and are not meant.
    """
    sizes: list[int] = _table()["limits"]["sizes"]
    most = most_instances("per_block" if kind == "capacity-block" else "per_plan")
    return next((size for size in sizes if size >= count), most)


def sold_days(kind: Literal["capacity-block", "training-plan"], days: int) -> int:
    """The shortest duration that is sold and not below so many days; the longest where none is."""
    row: Mapping[str, int] = _table()["limits"]["block_days" if kind == "capacity-block" else "plan_days"]
    if days <= row["single"]:
        return max(1, days)
    return min(-(-days // row["step"]) * row["step"], row["most"])


def weeks_ahead() -> int:
    """Weeks ahead in which a block or plan begins at the latest."""
    return int(_table()["limits"]["weeks_ahead"])


def capacity_form(capacity: Capacity) -> CapacityForm:
    """The row of the table: the kind, and of a reservation how it is named.

    Raises:
        ValueError: the reservation names an id and a resource group.
    """
    if not isinstance(capacity, Reservation):
        return capacity.kind
    if capacity.id and capacity.resource_group_arn:
        raise ValueError(
            f"a reservation is targeted by id ({capacity.id}) or by resource group "
            f"({capacity.resource_group_arn}), not by both"
        )
    if capacity.interruptible:
        return "reservation-interruptible"
    if capacity.id:
        return "reservation-id"
    return "reservation-resource-group" if capacity.resource_group_arn else "reservation-open"


def fabric_of(instance_type: InstanceType) -> Fabric:
    """What connects instances of the type; an unknown number of EFAs counts as some."""
    if instance_type.ultraserver:
        return "ultraserver"
    return "none" if instance_type.efa_interfaces == 0 else "efa"


def sold(form: CapacityForm, instance_type: InstanceType, *, orchestrator: Launcher = "ec2") -> bool:
    """Whether AWS sells this capacity for the type, as far as is known; for declared types it may.

    On demand HyperPod has prices of its own: there a type without an on-demand price of EC2 is unsold only if
    no HyperPod price of it is known either.
    """
    match form:
        case "on-demand":
            on_hyperpod = orchestrator in _HYPERPOD and bool(instance_type.hyperpod_regions)
            return instance_type.on_demand is not False or on_hyperpod
        case "spot":
            return instance_type.spot is not False
        case "training-plan":
            return instance_type.training_plan or instance_type.declared
        case "capacity-block":
            return bool(instance_type.capacity_block_regions) or instance_type.declared
        case _:
            return True


def _row(form: str, orchestrator: str, placement: str, fabric: str, is_sold: bool) -> Mapping[str, Any]:
    cell = {"capacity": form, "orchestrator": orchestrator, "placement": placement, "fabric": fabric}
    return next(row for row in _table()["decisions"] if _holds(row, cell, is_sold))


def _holds(row: Mapping[str, Any], cell: Mapping[str, str], is_sold: bool) -> bool:
    if row.get("sold", is_sold) != is_sold:
        return False
    return all(value in row.get(axis, (value,)) for axis, value in cell.items())


def _reservation(capacity: Capacity) -> str:
    match capacity:
        case Reservation():
            return capacity.id or capacity.resource_group_arn or "open"
        case CapacityBlock():
            return capacity.id
        case _:
            return ""


@cache
def _table() -> Mapping[str, Any]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def billed_platform(environment: Environment, group: NodeGroup) -> str | None:
    """The platform that EC2 bills the nodes of a group as, and a reservation must have.

    None: an image of people's own, whose platform only EC2 knows.
    """
    if group.image:
        return None
    settings = environment.orchestrator
    return RED_HAT if isinstance(settings, ParallelCluster) and settings.os.startswith("rhel") else LINUX
