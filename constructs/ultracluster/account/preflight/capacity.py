"""Reservations, Capacity Blocks and training plans: there, in the zone, of the type, large enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, code
from ultracluster.account.preflight.rows import Level, Question, Row, Situation
from ultracluster.config.capacity import CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.nodes import NodeGroup

SOON = timedelta(days=7)
"""A capacity that ends within this is pointed out."""
_SPEAKING: Mapping[str, Level] = {
    "active": "green", "scheduled": "yellow", "pending": "yellow", "payment-pending": "yellow",
    "assessing": "yellow", "delayed": "yellow", "expired": "red", "cancelled": "red", "cancelling": "red",
    "failed": "red", "payment-failed": "red", "unsupported": "red", "unavailable": "red",
}  # fmt: skip
"""What each state of a reservation means (EC2 API reference, CapacityReservationState)."""
_PLAN: Mapping[str, Level] = {
    "Active": "green", "Scheduled": "yellow", "Pending": "yellow", "Expired": "red", "Failed": "red",
}  # fmt: skip
_PLATFORMS = ("Linux/UNIX", "Ubuntu Pro", "Red Hat Enterprise Linux")

Groups = Sequence[tuple[str, NodeGroup]]


def questions(situation: Situation) -> Iterator[Question]:
    plans: dict[str, list[tuple[str, NodeGroup]]] = defaultdict(list)
    reservations: dict[str, list[tuple[str, NodeGroup]]] = defaultdict(list)
    for name, group in situation.environment.node_groups.items():
        match group.capacity:
            case TrainingPlan(arn=arn):
                plans[arn].append((name, group))
            case CapacityBlock(id=identifier) | Reservation(id=str() as identifier):
                reservations[identifier].append((name, group))
            case Reservation(resource_group_arn=str() as arn):
                yield Question(
                    "capacity", f"resource group of {name}",
                    lambda name=name, group=group, arn=arn: _resource_group(situation, name, group, arn),
                )  # fmt: skip
            case Reservation():
                yield Question(
                    "capacity", f"open reservations for {name}",
                    lambda name=name, group=group: _open(situation, name, group),
                )  # fmt: skip
            case _:
                pass
    for identifier, groups in reservations.items():
        yield Question(
            "capacity", identifier,
            lambda identifier=identifier, groups=groups: _reservation(situation, identifier, groups),
        )  # fmt: skip
    for arn, groups in plans.items():
        yield Question(
            "capacity", arn.rpartition("/")[2], lambda arn=arn, groups=groups: _plan(situation, arn, groups)
        )


def _reservation(situation: Situation, identifier: str, groups: Groups) -> Iterator[Row]:
    try:
        answer = situation.client("ec2").describe_capacity_reservations(CapacityReservationIds=[identifier])
    except AWS_ERRORS as error:
        if not code(error).startswith("InvalidCapacityReservationId"):
            raise
        there: list[dict[str, Any]] = []
    else:
        there = answer["CapacityReservations"]
    if not there:
        yield Row(
            identifier, "red", f"this account sees no such reservation in {situation.environment.region}",
            "check id, account and Region; a shared one must have been accepted",
        )  # fmt: skip
        return
    found = there[0]
    yield _state(situation, identifier, found)
    yield from _start(situation, identifier, found, groups)
    yield from _fits(situation, identifier, found, groups)
    if block := found.get("CapacityBlockId"):
        yield from _block(situation, identifier, block)


def _state(situation: Situation, identifier: str, found: Mapping[str, Any]) -> Row:
    state = str(found.get("State", ""))
    level = _SPEAKING.get(state, "unknown")
    start, end, now = found.get("StartDate"), found.get("EndDate"), situation.now()
    times = " ".join(
        [f"from {_day(start)}" if start else "", f"until {_day(end)}" if end else "without an end"]
    ).strip()
    text, do = f"{state or 'no state'}, {times}", ""
    if end and end <= now:
        level, do = "red", "it has ended: get another one, see `ultracluster capacity search`"
    elif state == "scheduled" and start:
        do = f"instances can be launched from {_day(start)} on"
    elif level == "red":
        do = "get another one, see `ultracluster capacity search`"
    elif level == "unknown":
        do = "a state that this release does not know: see the EC2 console"
    elif level == "yellow":
        do = "wait until it is active"
    elif end and end - now < SOON:
        level, do = "yellow", f"its instances are ended shortly before {_day(end)}: be done by then"
    return Row(f"{identifier} state", level, text, do)


def _start(situation: Situation, identifier: str, found: Mapping[str, Any], groups: Groups) -> Iterator[Row]:
    """Whether groups are made for the time at which their block begins."""
    begins = found.get("StartDate")
    until = situation.cluster.traits.until_block
    if found.get("ReservationType") != "capacity-block" or not begins or until is None:
        return
    written = f"{begins:%Y-%m-%dT%H:%M:%SZ}"
    for name, group in groups:
        block = group.capacity if isinstance(group.capacity, CapacityBlock) else None
        said = block.starts if block and until == "fills-later" else None
        what = f"{identifier} start of {name}"
        if begins > situation.now() and group.count and said is None:
            empty = f"write `count: 0` and `max_count: {group.greatest}` until then"
            yield Row(
                what, "red", f"has no instances before {written}, {name} asks for {group.count} at once",
                f'write `starts: "{written}"` in node_groups.{name}.capacity'
                if until == "fills-later"
                else empty,
            )  # fmt: skip
        elif said and begins <= situation.now():
            yield Row(what, "yellow", f"has begun, {name} waits for {said}", "remove `starts`")
        elif said and said != written:
            yield Row(
                what, "red", f"begins {written}, {name} waits for {said}", f'write `starts: "{written}"`'
            )
        elif said:
            yield Row(what, "green", f"{name} is filled then, at {said}")


def _fits(situation: Situation, identifier: str, found: Mapping[str, Any], groups: Groups) -> Iterator[Row]:
    environment = situation.environment
    zone = found.get("AvailabilityZoneId", "")
    wanted = environment.network.zone_id
    yield (
        Row(f"{identifier} zone", "green", zone)
        if zone == wanted
        else Row(
            f"{identifier} zone", "red" if zone else "unknown", f"is in {zone or 'a zone without an id'}",
            f"write `zone_id: {zone or '...'}`, or take a reservation in {wanted}",
        )
    )  # fmt: skip
    need = 0
    for name, group in groups:
        nodes = situation.cluster.groups[name].most_nodes
        need += nodes
        kind = found.get("InstanceType", "")
        if kind != group.instance_type:
            yield Row(
                f"{identifier} type", "red", f"holds {kind}, {name} asks for {group.instance_type}",
                "they never match: change one of them",
            )  # fmt: skip
        yield from _kind(identifier, found, name, group)
        yield from _placement(identifier, found, name, group)
    platform, tenancy = found.get("InstancePlatform", ""), found.get("Tenancy", "default")
    if platform not in _PLATFORMS:
        yield Row(
            f"{identifier} platform",
            "red",
            f"is for {platform}, the nodes are Linux/UNIX",
            "take another one",
        )
    elif platform != "Linux/UNIX":
        yield Row(
            f"{identifier} platform",
            "yellow",
            f"is for {platform}",
            "nodes match if their image is billed so",
        )
    if tenancy != "default":
        yield Row(f"{identifier} tenancy", "red", f"is {tenancy}, the nodes are not", "take another one")
    total, free = found.get("TotalInstanceCount", 0), found.get("AvailableInstanceCount", 0)
    yield _count(f"{identifier} count", need, total, free)


def _count(what: str, need: int, total: int, free: int) -> Row:
    text = f"{total} instances, {free} free, {need} needed"
    if total < need:
        return Row(what, "red", text, f"lower the count to {total}, or get more")
    if free < need:
        return Row(what, "yellow", text, "right if this cluster itself uses them; otherwise free them first")
    return Row(what, "green", text)


def _kind(identifier: str, found: Mapping[str, Any], name: str, group: NodeGroup) -> Iterator[Row]:
    is_block = found.get("ReservationType") == "capacity-block"
    if is_block != (group.capacity.kind == "capacity-block"):
        right = "capacity-block" if is_block else "reservation"
        yield Row(
            f"{identifier} kind", "red", f"is a {'Capacity Block' if is_block else 'plain reservation'}",
            f"write `kind: {right}` in node_groups.{name}.capacity",
        )  # fmt: skip


def _placement(identifier: str, found: Mapping[str, Any], name: str, group: NodeGroup) -> Iterator[Row]:
    made_in = str(found.get("PlacementGroupArn") or "").rpartition("placement-group/")[2]
    reservation = group.capacity if isinstance(group.capacity, Reservation) else None
    wanted = (reservation.placement_group if reservation else None) or ""
    if made_in == wanted:
        return
    yield Row(
        f"{identifier} placement group", "red",
        f"was made in {made_in or 'no placement group'}, {name} is launched into {wanted or 'none'}",
        f"write `placement_group: {made_in}`"
        if made_in
        else "remove `placement_group`: the nodes would not match",
    )  # fmt: skip


def _block(situation: Situation, identifier: str, block: str) -> Iterator[Row]:
    """How the hardware of a block is; EC2 tells it of UltraServers."""
    answer = situation.client("ec2").describe_capacity_block_status(CapacityBlockIds=[block])
    for status in answer.get("CapacityBlockStatuses", []):
        gone, link = status.get("TotalUnavailableCapacity", 0), status.get("InterconnectStatus", "")
        bad = gone > 0 or link not in ("ok", "")
        yield Row(
            f"{identifier} hardware", "yellow" if bad else "green",
            f"{gone} instances unavailable" + (f", interconnect {link}" if link else ""),
            "plan with fewer nodes until AWS has repaired it" if bad else "",
        )  # fmt: skip


def _open(situation: Situation, name: str, group: NodeGroup, ids: Sequence[str] = ()) -> Iterator[Row]:
    """Reservations that nodes match without naming one, or the members of a resource group."""
    zone = situation.environment.network.zone_id
    filters = [{"Name": "instance-type", "Values": [group.instance_type]}]
    more: dict[str, Any] = {"CapacityReservationIds": list(ids)} if ids else {}
    pages = (
        situation.client("ec2")
        .get_paginator("describe_capacity_reservations")
        .paginate(Filters=filters, **more)
    )
    fitting = [
        row
        for page in pages
        for row in page["CapacityReservations"]
        if row.get("State") == "active"
        and row.get("AvailabilityZoneId") == zone
        and (ids or row.get("InstanceMatchCriteria") == "open")
    ]
    what = f"{'reservations of the resource group' if ids else 'open reservations'} for {name}"
    need = situation.cluster.groups[name].most_nodes
    total = sum(row.get("TotalInstanceCount", 0) for row in fitting)
    free = sum(row.get("AvailableInstanceCount", 0) for row in fitting)
    if ids or total:
        yield _count(what, need, total, free)
    else:
        yield Row(
            what, "yellow", f"no active one for {group.instance_type} in {zone}",
            "nodes are launched on demand then, if the zone has them",
        )  # fmt: skip


def _resource_group(situation: Situation, name: str, group: NodeGroup, arn: str) -> Iterator[Row]:
    pages = situation.client("resource-groups").get_paginator("list_group_resources").paginate(Group=arn)
    ids = [
        row["Identifier"]["ResourceArn"].rpartition("/")[2]
        for page in pages
        for row in page.get("Resources", [])
        if ":capacity-reservation/" in row.get("Identifier", {}).get("ResourceArn", "")
    ]
    if ids:
        yield from _open(situation, name, group, ids)
    else:
        yield Row(f"resource group of {name}", "red", "has no reservation", "add the reservations to it")


def _plan(situation: Situation, arn: str, groups: Groups) -> Iterator[Row]:
    name = arn.rpartition("/")[2]
    plan = situation.client("sagemaker").describe_training_plan(TrainingPlanName=name)
    yield _plan_state(situation, name, plan, arn)
    targets = plan.get("TargetResources", [])
    if targets and "hyperpod-cluster" not in targets:
        yield Row(
            f"{name} target", "red", f"is for {', '.join(targets)}",
            "a plan's target is fixed: search and buy one with the target hyperpod-cluster",
        )  # fmt: skip
    capacities: list[dict[str, Any]] = plan.get("ReservedCapacitySummaries", [])
    yield from _plan_zone(situation, name, capacities)
    held = {str(one.get("InstanceType", "")).removeprefix("ml.") for one in capacities}
    need = 0
    for group_name, group in groups:
        need += situation.cluster.groups[group_name].most_nodes
        if capacities and group.instance_type not in held:
            yield Row(
                f"{name} type", "red",
                f"holds {', '.join(sorted(held))}; {group_name} asks for {group.instance_type}",
                "they never match: change one of them",
            )  # fmt: skip
    total = plan.get("TotalInstanceCount", sum(one.get("TotalInstanceCount", 0) for one in capacities))
    yield _count(f"{name} count", need, total, plan.get("AvailableInstanceCount", total))


def _plan_state(situation: Situation, name: str, plan: Mapping[str, Any], arn: str) -> Row:
    status, end, start = str(plan.get("Status", "")), plan.get("EndTime"), plan.get("StartTime")
    level = _PLAN.get(status, "unknown")
    text = ", ".join(
        part
        for part in (
            status or "no status",
            str(plan.get("StatusMessage", "")),
            f"{_day(start)} to {_day(end)}" if start and end else "",
        )
        if part
    )
    do = ""
    if plan.get("TrainingPlanArn", arn) != arn:
        level, do = "red", f"another plan of that name: {plan.get('TrainingPlanArn')}"
    elif level == "red" or (end and end <= situation.now()):
        level, do = "red", "it has ended: `ultracluster capacity search` lists what is offered"
    elif status == "Scheduled" and start:
        do = f"nodes come from {_day(start)} on; the cluster can be made before"
    elif status == "Pending":
        do = "wait until it is Scheduled or Active: HyperPod refuses it until then"
    elif level == "unknown":
        do = "a status that this release does not know: see the SageMaker console"
    elif end and end - situation.now() < SOON:
        level, do = "yellow", "HyperPod takes the instances back an hour before the end"
    return Row(f"{name} state", level, text, do)


def _plan_zone(situation: Situation, name: str, capacities: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    wanted = situation.environment.network.zone_id
    zones = {str(one["AvailabilityZoneId"]) for one in capacities if one.get("AvailabilityZoneId")}
    names = {
        str(one["AvailabilityZone"])
        for one in capacities
        if one.get("AvailabilityZone") and not one.get("AvailabilityZoneId")
    }
    if names:  # a name means another zone in each account: only this account's ids count
        answer = situation.client("ec2").describe_availability_zones(ZoneNames=sorted(names))
        zones |= {str(zone["ZoneId"]) for zone in answer["AvailabilityZones"]}
    if zones == {wanted}:
        yield Row(f"{name} zone", "green", wanted)
    elif not zones:
        yield Row(f"{name} zone", "unknown", "the plan names no zone yet", "look again when it is Scheduled")
    else:
        found = ", ".join(sorted(zones))
        yield Row(
            f"{name} zone", "red", f"is in {found}, the environment in {wanted}",
            f"write `zone_id: {sorted(zones)[0]}`: a new zone is a new subnet and a new cluster",
        )  # fmt: skip


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
