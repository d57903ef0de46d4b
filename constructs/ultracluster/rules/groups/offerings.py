"""Rules on node groups: whether AWS sells types, blocks and plans in the Region and zone, and how many."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ultracluster.catalog import (
    InstanceType,
    Region,
    instance_types,
    nearest_instance_types,
    offered_zone_ids,
    region,
    zone_region,
)
from ultracluster.config.capacity import CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, anywhere, ask, write
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import most_instances
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import GRP
from ultracluster.rules.sources import CAPACITY_BLOCKS, CFN_LINT, MOTO, TRAINING_PLANS
from ultracluster.rules.zones import in_local_zone, not_a_zone_of

DATE = "2026-11-22"
OFFERINGS = (
    "aws ec2 describe-instance-type-offerings --location-type availability-zone-id "
    "--filters Name=instance-type,Values=<type> --region <region>"
)


@GRP.warning(
    25,
    f"{CFN_LINT}, derived from AWS price lists; EC2 DescribeInstanceTypeOfferings; {CAPACITY_BLOCKS}",
    DATE,
    by_hand=OFFERINGS,
)
def type_in_region(group: Group, home: Region, cluster: Cluster) -> Breaches:
    """EC2 offers the instance type in the Region.

    HyperPod has prices of its own: its groups are judged by HYP041.
    """
    if group.in_service:
        return
    for place, kind in _typed(group):
        places = _sold_in(kind)
        if places and home.name not in places:
            yield at(*place).breach(
                f"no price, offer or Capacity Block of {kind.name} is known in {home.name}: EC2 would "
                f"refuse the instances (Unsupported). Known in: {', '.join(places)}.",
                moved_to(cluster, _like(home.name, places)) | _other_type(kind, home.name),
            )


@GRP.warning(
    26,
    f"{MOTO} and skypilot-catalog ship it, undated",
    DATE,
    by_hand=OFFERINGS,
)
def type_in_zone(cluster: Cluster, home: Region) -> Breaches:
    """The zone offers the instance type."""
    zone = cluster.environment.network.zone_id
    if not_a_zone_of(home, zone, ("network", "zone_id")):
        return  # reported by ENV003
    typed = [
        (("node_groups", name, *place), kind)
        for name, group in cluster.groups.items()
        if group.zone_id == zone  # of others HYP079 speaks
        for place, kind in _typed(group)
    ]
    offered = {kind.name: _zones_of(kind, home, zone) for _, kind in typed}
    for path, kind in typed:
        zones = offered[kind.name]
        if not zones or zone in zones:
            continue
        for_all = [one for one in zones if all(one in others for others in offered.values() if others)]
        taken = cluster.second_zones
        near = [one for one in for_all or zones if not in_local_zone(home, one) and one not in taken]
        yield at(*path).breach(
            f"{kind.name} was seen in {', '.join(zones)}, not in {zone}. In the wrong zone the "
            "creation fails for lack of capacity and is rolled back.",
            anywhere({("network", "zone_id"): near[0]})
            if near
            else ask(
                "decision",
                f"choose another Region: only Local Zones have it ({', '.join(zones)}), which require opt-in",
            ),
        )


@GRP.error(
    27,
    f"{TRAINING_PLANS}: one instance type; EC2 User Guide, On-Demand Capacity Reservations: InstanceType",
    DATE,
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id>; "
    "aws sagemaker describe-training-plan --training-plan-name <name>",
)
def reservation_has_one_type(cluster: Cluster) -> Breaches:
    """A reservation, Capacity Block or training plan is used for one instance type."""
    for identifier, groups in _by_id(cluster).items():
        (first, leader), *others = [(name, group.settings) for name, group in groups.items()]
        for name, group in others:
            if group.instance_type != leader.instance_type:
                yield at("node_groups", name, "capacity").breach(
                    f"{_short(identifier)} is also the capacity of `{first}` ({leader.instance_type}), and "
                    f"`{name}` has {group.instance_type}: it holds instances of one type, so nodes of the "
                    "other never start.",
                    write({"kind": "on-demand"}).noting(f"or one of {group.instance_type}"),
                )


@GRP.error(28, f"{CAPACITY_BLOCKS}: up to 64 instances; {TRAINING_PLANS}: 1, 2, 4, 8, 16, 32 or 64", DATE)
def reservation_size(cluster: Cluster) -> Breaches:
    """No Capacity Block or training plan is used for more instances than AWS sells in one."""
    for identifier, groups in _by_id(cluster).items():
        last, leader = list(groups.items())[-1]
        if isinstance(leader.capacity, Reservation) or _of_ultraservers(leader):
            continue
        plan = isinstance(leader.capacity, TrainingPlan)
        most = most_instances("per_plan" if plan else "per_block")
        nodes = sum(group.settings.max_nodes for group in groups.values())
        if nodes > most:
            what = "plan" if plan else "block"
            names = f" of {', '.join(groups)} together" if len(groups) > 1 else ""
            yield at("node_groups", last, "capacity").breach(
                f"{nodes} nodes{names} from {_short(identifier)}: AWS sells no {what} of more than {most} "
                "instances.",
                ask("fact", f"use at most {most} nodes, and a separate group for each further {what}"),
            )


@GRP.warning(
    29,
    f"{CAPACITY_BLOCKS}: across all accounts of an organisation, on a date",
    DATE,
    by_hand="aws ec2 describe-capacity-blocks",
)
def capacity_blocks_total(cluster: Cluster) -> Breaches:
    """All Capacity Blocks together hold at most 256 instances."""
    groups = {
        name: group
        for name, group in cluster.groups.items()
        if isinstance(group.capacity, CapacityBlock) and not _of_ultraservers(group)
    }
    nodes, most = sum(group.settings.max_nodes for group in groups.values()), most_instances("all_blocks")
    if nodes > most:
        yield at("node_groups", list(groups)[-1], "capacity").breach(
            f"{nodes} nodes from Capacity Blocks; an organisation can have at most {most} on one day.",
            ask(
                "decision",
                f"{most} nodes or fewer at a time, the rest on demand or by a reservation; "
                "acknowledge this where the blocks follow each other",
            ),
        )


@GRP.warning(
    34,
    f"{CAPACITY_BLOCKS}, supported instance types and Regions (edition of 2026-10)",
    DATE,
    by_hand="aws ec2 describe-capacity-block-offerings --instance-type <type> --instance-count <n> "
    "--capacity-duration-hours 24 --region <region>",
)
def block_in_region(group: Group, home: Region) -> Breaches:
    """AWS sells Capacity Blocks of the instance type in the Region."""
    kind = group.type
    if not isinstance(group.capacity, CapacityBlock) or not kind or not kind.capacity_block_regions:
        return
    places = _regions(kind.capacity_block_regions)
    if home.name not in places:
        yield at("capacity").breach(
            f"according to its guide, AWS sells no Capacity Block of {kind.name} in {home.name}. It does in "
            f"{', '.join(kind.capacity_block_regions)}.",
            ask("decision", f"region: {_like(home.name, places)}")
            if kind.ultraserver
            else write({"kind": "on-demand"}).noting(f"or region: {_like(home.name, places)}"),
        )


def _typed(group: Group) -> Iterator[tuple[YamlPath, InstanceType]]:
    """The types of a group that the catalogue has, each with its place."""
    for number, kind in enumerate(group.types):
        if kind and not kind.declared:
            yield ("instance_types", number - 1) if number else ("instance_type",), kind


def _sold_in(kind: InstanceType) -> tuple[str, ...]:
    """Regions with a price or a Capacity Block of the type; empty where none is known."""
    return tuple(sorted({*kind.regions, *_regions(kind.capacity_block_regions)}))


def _zones_of(kind: InstanceType, here: Region, zone: str) -> tuple[str, ...]:
    """Zones of the Region that offer the type; empty means unknown."""
    if zones := offered_zone_ids(kind.name, here.name):
        return zones
    if not kind.regions and kind.capacity_block_regions:
        return _local_zones(kind, here, zone)
    lacking = {one for one, families in here.zone_lacks.items() if kind.family in families}
    if not lacking or in_local_zone(here, zone):
        return ()
    return tuple(one for one in here.zone_ids if one not in lacking and not in_local_zone(here, one))


def _local_zones(kind: InstanceType, here: Region, zone: str) -> tuple[str, ...]:
    """Local Zones with blocks of a type that nothing else has: use1-dfw2-az1 of us-east-1-dfw-2a."""
    names = [
        re.fullmatch(rf"{here.name}-([a-z]+)-(\d+)[a-z]", region) for region in kind.capacity_block_regions
    ]
    begins = tuple(f"{here.zone_prefix}-{one[1]}{one[2]}-az" for one in names if one)
    return (zone,) if begins and zone.startswith(begins) else tuple(f"{begin}1" for begin in begins)


def _regions(places: tuple[str, ...]) -> tuple[str, ...]:
    """The Regions of Regions and of Local Zones: us-east-1 of us-east-1-dfw-2a."""
    found = (region(place) or zone_region(place) for place in places)
    return tuple(dict.fromkeys(home.name for home in found if home))


def _like(name: str, places: tuple[str, ...]) -> str:
    """The Region whose name is most like this one: eu-west-1 for eu-west-3."""
    return difflib.get_close_matches(name, places, n=1, cutoff=0)[0]


def _other_type(kind: InstanceType, here: str) -> Remedy:
    alike = [
        one.name
        for one in instance_types().values()
        if here in one.regions and bool(one.accelerator) == bool(kind.accelerator)
    ]
    near = nearest_instance_types(kind.name, candidates=alike, count=1)
    return write(near[0]).noting(f"available in {here}") if near else ask("decision", "another type")


def _by_id(cluster: Cluster) -> dict[str, dict[str, Group]]:
    """Groups by the id of their reservation or block, or the ARN of their plan."""
    found: dict[str, dict[str, Group]] = {}
    for name, group in cluster.groups.items():
        match group.capacity:
            case TrainingPlan(arn=identifier) | CapacityBlock(id=identifier):
                found.setdefault(identifier, {})[name] = group
            case Reservation(id=str() as identifier):
                found.setdefault(identifier, {})[name] = group
            case _:
                pass
    return found


def _of_ultraservers(group: Group) -> bool:
    return group.type is None or bool(group.type.ultraserver)


def _short(identifier: str) -> str:
    return identifier.rpartition("/")[2]
