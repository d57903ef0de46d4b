"""Where a first cluster goes and how its nodes are paid: Region, zone, capacity and types, with reasons.

Only the user chooses a Local Zone or Spot: an account opts in to the one, and with the other a job on all
nodes ends with the first that is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog import (
    InstanceType,
    connected_zone,
    instance_type,
    is_local_zone,
    offered_zone_ids,
    region,
    regions,
)
from ultracluster.catalog.accelerators import Accelerators, types_with
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.fsx import lustre_offer
from ultracluster.catalog.guidelines import general_families
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS
from ultracluster.model.capacity import decide, most_instances
from ultracluster.plan.choice import CAPACITIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value and why it is taken."""

    value: str
    reason: str
    """A clause without a full stop, to stand in a comment."""


class NoZoneError(ValueError):
    """No zone can be chosen; says why, and what the user can."""


def zones_for(
    region_name: str, type_name: str, orchestrator: OrchestratorKind | None = None
) -> tuple[str, ...]:
    """Zone ids of a Region, best first: those known to offer the type, then the others, Local Zones last.

    Between equals those that have every Lustre file system, that take EKS's control plane where there is one,
    and that lack the fewest families of types.
    """
    found = region(region_name)
    zones = found.zone_ids if found else ()
    offered = _offering(region_name, type_name)
    kubernetes = orchestrator is not None and TRAITS[orchestrator].kubernetes

    def rank(zone: str) -> tuple[bool, bool, bool, bool, int]:
        offer = lustre_offer(region_name, zone, local=is_local_zone(zone))
        return (
            is_local_zone(zone),
            bool(offered) and zone not in offered,
            offer is not None and "persistent-2-ssd" not in offer.deployments,
            kubernetes and zone in refused_zones(),
            sum(one in (found.zone_lacks.get(zone, ()) if found else ()) for one in _general()),
        )

    return tuple(sorted(dict.fromkeys((*offered, *zones)), key=rank))


def only_in_local_zones(region_name: str, type_name: str) -> bool:
    """Whether no Availability Zone of the Region is known to have the type, and a Local Zone is."""
    if offered := offered_zone_ids(type_name, region_name):
        return all(map(is_local_zone, offered))
    type_ = instance_type(type_name)
    places = type_.capacity_block_regions if type_ and not type_.regions else ()
    return bool(places) and all(place.startswith(f"{region_name}-") for place in places)


def local_zones_for(region_name: str, type_name: str) -> tuple[str, ...]:
    """Local Zones of a Region known to have a type: use1-dfw2-az1 where blocks are in us-east-1-dfw-2a."""
    offered = [zone for zone in offered_zone_ids(type_name, region_name) if is_local_zone(zone)]
    type_, found = instance_type(type_name), region(region_name)
    for place in type_.capacity_block_regions if type_ else ():
        name = re.fullmatch(rf"{region_name}-([a-z]+)-(\d+)[a-z]", place)
        if name and found and found.zone_prefix:
            offered.append(f"{found.zone_prefix}-{name[1]}{name[2]}-az1")
    return tuple(dict.fromkeys(offered))


def zone_for(region_name: str, type_name: str, orchestrator: OrchestratorKind) -> Choice:
    """The zone that is taken where none is asked for.

    Raises:
        NoZoneError: no zone of the Region is known, or only a Local Zone has the type.
    """
    zones = zones_for(region_name, type_name, orchestrator)
    offered = _offering(region_name, type_name)
    local = local_zones_for(region_name, type_name)
    if only_in_local_zones(region_name, type_name):
        raise NoZoneError(
            f"Pass --zone-id: in {region_name} only a Local Zone is known to have {type_name}, and an "
            f"account opts in to it. Zones there: {', '.join(local)}"
        )
    if not zones or is_local_zone(zones[0]):
        found = region(region_name)
        form = f" Their ids have the form {found.zone_prefix}-az1." if found and found.zone_prefix else ""
        raise NoZoneError(
            f"Pass --zone-id: no zone of {region_name} is known.{form} `aws ec2 "
            f"describe-availability-zones --region {region_name}` lists them"
        )
    if not offered:
        reason = f"which zones offer {type_name} is not known; `ultracluster preflight` asks"
    else:
        alike = [zone for zone in offered if not is_local_zone(zone)]
        reason = f"one of the zones known to offer {type_name} ({', '.join(alike)})"
    if local:
        reason += f"; not the Local Zone {', '.join(local)}, to which an account opts in"
    return Choice(value=zones[0], reason=reason)


def second_zone(region_name: str, zone_id: str) -> Choice | None:
    """Another zone of the Region that EKS takes, never a Local Zone; None where the form is unknown.

    Of a Local Zone, another than it is connected to: that one has the first subnet.
    """
    found = region(region_name)
    zones = found.zone_ids if found else ()
    taken = (zone_id, connected_zone(zone_id), *refused_zones())
    other = next((zone for zone in zones if zone not in taken and not is_local_zone(zone)), None)
    if other:
        return Choice(value=other, reason="another zone of the Region")
    if zones or not found or not found.zone_prefix:
        return None
    form = next(one for one in (f"{found.zone_prefix}-az1", f"{found.zone_prefix}-az2") if one != zone_id)
    return Choice(value=form, reason="by the form of the ids: no zone of the Region is known")


def regions_for(type_name: str, orchestrator: OrchestratorKind | None = None) -> tuple[str, ...]:
    """Regions known to have a type, and for an orchestrator to take it; all for a type known in none."""
    type_ = instance_type(type_name)
    hyperpod = orchestrator is not None and TRAITS[orchestrator].hyperpod
    return tuple(
        name
        for name, found in regions().items()
        if (type_ is None or _sold(type_, name, hyperpod=hyperpod))
        and (orchestrator is None or TRAITS[orchestrator].offered(found) is not False)
    )


def capacity_for(
    orchestrator: OrchestratorKind, type_name: str, nodes: int = 1, region_name: str = ""
) -> Choice:
    """The capacity that is taken where none is asked for: on demand, or what sells the type; never Spot."""
    type_ = instance_type(type_name)
    legal = capacities(orchestrator, type_name)
    if type_ is None or ("on-demand" in legal and not _blocks_only(type_, orchestrator, region_name)):
        return Choice(value="on-demand", reason="on demand: nothing is bought before, nothing promised")
    if TRAITS[orchestrator].hyperpod:
        why = f"training plans are sold for {type_name}; HyperPod has no on-demand price of it"
        return Choice(value="training-plan", reason=why)
    here = f" in {region_name}" if "on-demand" in legal else ""
    if "capacity-block" in legal and not type_.ultraserver and nodes > most_instances("per_block"):
        most = most_instances("per_block")
        why = f"a Capacity Block holds {most}, and {type_name} has no on-demand price{here}: ask AWS for one"
        return Choice(value="reservation", reason=why)
    why = f"Capacity Blocks of {type_name} are sold; it has no on-demand price{here}"
    return Choice(value="capacity-block", reason=why)


def _blocks_only(instance_type: InstanceType, orchestrator: OrchestratorKind, region_name: str) -> bool:
    """Whether EC2 is known to sell the type on demand elsewhere, and in this Region by blocks."""
    elsewhere = bool(region_name and instance_type.regions) and region_name not in instance_type.regions
    if TRAITS[orchestrator].hyperpod or not elsewhere:
        return False
    return _in_region(instance_type.capacity_block_regions, region_name)


def capacities(orchestrator: OrchestratorKind, type_name: str) -> tuple[str, ...]:
    """The kinds of capacity that are not refused for the type; none for a type that is unknown."""
    type_ = instance_type(type_name)
    if type_ is None:
        return ()
    decided = (
        (capacity.kind, decide(capacity, orchestrator=orchestrator, placement="none", instance_type=type_))
        for capacity in CAPACITIES.values()
    )
    return tuple(kind for kind, decision in decided if decision.legal)


def general_type(
    size: str, region_name: str, zone_id: str, *, hyperpod: bool, arm: bool = False, system: bool = False
) -> str:
    """A type without accelerators, of the first family that the Region and the zone have.

    `hyperpod`: HyperPod launches it. `system`: for the add-ons of Kubernetes, whatever the compute nodes are.
    """
    families = general_families("arm64" if arm else "hyperpod" if hyperpod or system else "x86_64")
    found = region(region_name)
    lacking = found.zone_lacks.get(zone_id, ()) if found else ()
    names = [f"{family}.{size}" for family in families if family not in lacking]
    sold = (name for name in names if _sold_by_name(name, region_name, hyperpod=hyperpod))
    return next(sold, f"{families[0]}.{size}")


def type_for(
    accelerators: Accelerators, orchestrator: OrchestratorKind | None, region_name: str
) -> InstanceType | None:
    """The type that so many accelerators are best had with; None where no type has them.

    The one with most of them that is not larger than what is asked for, then what the Region sells, on demand
    before blocks, with the most EFA.
    """
    candidates = types_with(accelerators.name)
    hyperpod = orchestrator is not None and TRAITS[orchestrator].hyperpod

    def rank(candidate: InstanceType) -> tuple[object, ...]:
        each = candidate.accelerator.count if candidate.accelerator else 0
        return (
            each > accelerators.count,
            -each if each <= accelerators.count else each,
            bool(candidate.ultraserver),
            bool(region_name) and not _sold(candidate, region_name, hyperpod=hyperpod),
            hyperpod and not candidate.hyperpod,
            candidate.on_demand is False,
            not candidate.capacity_block_regions,
            -(candidate.efa_interfaces or 0),
            -len(candidate.regions),
            candidate.vcpu,
            candidate.name,
        )

    return min(candidates, key=rank, default=None)


def _offering(region_name: str, type_name: str) -> tuple[str, ...]:
    """Zones known to offer a type; empty where none is known to differ from the others."""
    if offered := offered_zone_ids(type_name, region_name):
        return offered
    type_, found = instance_type(type_name), region(region_name)
    if type_ is None or found is None:
        return ()
    lacking = [zone for zone, families in found.zone_lacks.items() if type_.family in families]
    rest = tuple(zone for zone in found.zone_ids if zone not in lacking)
    return rest if lacking and any(not is_local_zone(zone) for zone in rest) else ()


def _sold_by_name(name: str, region_name: str, *, hyperpod: bool) -> bool:
    type_ = instance_type(name)
    return type_ is not None and _sold(type_, region_name, hyperpod=hyperpod)


def _sold(instance_type: InstanceType, region_name: str, *, hyperpod: bool) -> bool:
    """Whether a price or an offer of the type is known in the Region; unknown everywhere counts as yes."""
    places: Sequence[str] = instance_type.hyperpod_regions if hyperpod else ()
    if not places:
        places = (*instance_type.regions, *instance_type.capacity_block_regions)
    return not places or _in_region(places, region_name)


def _in_region(places: Sequence[str], region_name: str) -> bool:
    """Whether the Region, or a Local Zone of it, is among the places."""
    return any(place == region_name or place.startswith(f"{region_name}-") for place in places)


def _general() -> tuple[str, ...]:
    return (*general_families("x86_64"), *general_families("hyperpod"))
