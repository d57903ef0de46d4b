"""Reservations and Capacity Blocks: there, in the zone, of the type, large enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, code
from ultracluster.account.preflight.rows import Level, Row, Situation
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.nodes import NodeGroup
from ultracluster.model.capacity import LINUX, RED_HAT, billed_platform

SOON = timedelta(days=7)
"""A capacity that ends within this is pointed out."""
_SPEAKING: Mapping[str, Level] = {
    "active": "green", "scheduled": "yellow", "pending": "yellow", "payment-pending": "yellow",
    "assessing": "yellow", "delayed": "yellow", "expired": "red", "cancelled": "red", "cancelling": "red",
    "failed": "red", "payment-failed": "red", "unsupported": "red", "unavailable": "red",
}  # fmt: skip
"""What each state of a reservation means (EC2 API reference, CapacityReservationState)."""
_LINUX_IN_ALL = (LINUX, "Ubuntu Pro", RED_HAT, "RHEL with HA", "SUSE Linux")
"""Platforms of Linux that Capacity Blocks are sold for (EC2 User Guide, Capacity Blocks for ML, 2026-11)."""

Groups = Sequence[tuple[str, NodeGroup]]


def reservation(situation: Situation, identifier: str, groups: Groups) -> Iterator[Row]:
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
        [f"from {day(start)}" if start else "", f"until {day(end)}" if end else "without an end"]
    ).strip()
    text, do = f"{state or 'no state'}, {times}", ""
    if end and end <= now:
        level, do = "red", "it has ended: get another one, see `ultracluster capacity search`"
    elif state == "scheduled" and start:
        do = f"instances can be launched from {day(start)} on"
    elif level == "red":
        do = "get another one, see `ultracluster capacity search`"
    elif level == "unknown":
        do = "a state that this release does not know: see the EC2 console"
    elif level == "yellow":
        do = "wait until it is active"
    elif end and end - now < SOON:
        block = found.get("ReservationType") == "capacity-block"
        level, do = (
            "yellow",
            f"its instances are ended shortly before {day(end)}: be done by then"
            if block
            else f"nodes run on after {day(end)}, and are replaced on demand, if at all: extend it",
        )
    return Row(f"{identifier} state", level, text, do, starts=start if start and start > now else None)


def _start(situation: Situation, identifier: str, found: Mapping[str, Any], groups: Groups) -> Iterator[Row]:
    """Yield whether groups are made for the time at which their block begins."""
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
            empty = f"write `count: 0` and `max_count: {group.max_nodes}` until then"
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
    yield from _platform(situation, identifier, found, groups)
    tenancy = found.get("Tenancy", "default")
    if tenancy != "default":
        yield Row(f"{identifier} tenancy", "red", f"is {tenancy}, the nodes are not", "take another one")
    total, free = found.get("TotalInstanceCount", 0), found.get("AvailableInstanceCount", 0)
    yield count_row(f"{identifier} count", need, total, free)


def _platform(
    situation: Situation, identifier: str, found: Mapping[str, Any], groups: Groups
) -> Iterator[Row]:
    """Compare the platform of a reservation with what nodes are billed as: others do not match it."""
    platform, what = found.get("InstancePlatform", ""), f"{identifier} platform"
    for name, group in groups:
        billed = billed_platform(situation.environment, group)
        if platform == billed:
            continue
        is_linux = platform in _LINUX_IN_ALL or "linux" in platform.lower()
        if not platform:
            yield Row(what, "unknown", "EC2 names none", "see the EC2 console")
        elif billed is None and is_linux:
            if platform != LINUX:
                yield Row(
                    what, "yellow", f"is for {platform}, {name} has an image of your own",
                    "nodes match if EC2 bills the image so: `aws ec2 describe-images --image-ids <ami> "
                    "--query 'Images[].PlatformDetails'`",
                )  # fmt: skip
        else:
            yield Row(
                what, "red",
                f"is for {platform}, the nodes of {name} are {billed or LINUX}: they never match",
                "take another one" + (", or another `os`" if platform in (LINUX, RED_HAT) else ""),
            )  # fmt: skip


def count_row(what: str, need: int, total: int, free: int) -> Row:
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
    plain = group.capacity if isinstance(group.capacity, Reservation) else None
    lent = bool(found.get("Interruptible"))
    if plain and plain.interruptible != lent:
        yield Row(
            f"{identifier} interruptible", "red",
            "is interruptible: launches that do not say so fail" if lent else "is not interruptible",
            f"write `interruptible: {str(lent).lower()}` in node_groups.{name}.capacity",
        )  # fmt: skip


def _placement(identifier: str, found: Mapping[str, Any], name: str, group: NodeGroup) -> Iterator[Row]:
    made_in = str(found.get("PlacementGroupArn") or "").rpartition("placement-group/")[2]
    plain = group.capacity if isinstance(group.capacity, Reservation) else None
    wanted = (plain.placement_group if plain else None) or ""
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
    """Yield the state of hardware of a block, which EC2 reports for UltraServers."""
    answer = situation.client("ec2").describe_capacity_block_status(CapacityBlockIds=[block])
    for status in answer.get("CapacityBlockStatuses", []):
        gone, link = status.get("TotalUnavailableCapacity", 0), status.get("InterconnectStatus", "")
        bad = gone > 0 or link not in ("ok", "")
        yield Row(
            f"{identifier} hardware", "yellow" if bad else "green",
            f"{gone} instances unavailable" + (f", interconnect {link}" if link else ""),
            "plan with fewer nodes until AWS has repaired it" if bad else "",
        )  # fmt: skip


def open_reservations(
    situation: Situation, name: str, group: NodeGroup, ids: Sequence[str] = ()
) -> Iterator[Row]:
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
    others = [(row, why) for row in fitting if (why := _apart(situation, row, name, group))]
    fitting = [row for row in fitting if row not in [other for other, _ in others]]
    for row, why in others:
        identifier = row.get("CapacityReservationId", "a reservation")
        yield Row(f"{identifier} for {name}", "yellow", f"is not counted: {why}", "nodes do not match it")
    what = f"{'reservations of the resource group' if ids else 'open reservations'} for {name}"
    need = situation.cluster.groups[name].most_nodes
    total = sum(row.get("TotalInstanceCount", 0) for row in fitting)
    free = sum(row.get("AvailableInstanceCount", 0) for row in fitting)
    if ids or total:
        yield count_row(what, need, total, free)
    else:
        yield Row(
            what, "yellow", f"no active one for {group.instance_type} in {zone}",
            "nodes are launched on demand then, if the zone has them",
        )  # fmt: skip


def _apart(situation: Situation, row: Mapping[str, Any], name: str, group: NodeGroup) -> str:
    """Return why nodes of a group do not match a reservation of their type and zone; empty where they may."""
    if (tenancy := row.get("Tenancy", "default")) != "default":
        return f"its tenancy is {tenancy}"
    levels = (*_platform(situation, "", row, [(name, group)]), *_placement("", row, name, group))
    return "; ".join(level.found for level in levels if level.level == "red")


def resource_group(situation: Situation, name: str, group: NodeGroup, arn: str) -> Iterator[Row]:
    pages = situation.client("resource-groups").get_paginator("list_group_resources").paginate(Group=arn)
    ids = [
        row["Identifier"]["ResourceArn"].rpartition("/")[2]
        for page in pages
        for row in page.get("Resources", [])
        if ":capacity-reservation/" in row.get("Identifier", {}).get("ResourceArn", "")
    ]
    if ids:
        yield from open_reservations(situation, name, group, ids)
    else:
        yield Row(f"resource group of {name}", "red", "has no reservation", "add the reservations to it")


def day(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
