"""The zone, and whether it offers the instance types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ultracluster.account.preflight.rows import Question, Row, Situation


def questions(situation: Situation) -> Iterator[Question]:
    yield Question("zone", "zones", lambda: _zones(situation))
    yield Question("zone", "instance types", lambda: _offerings(situation))


def _zones(situation: Situation) -> Iterator[Row]:
    environment = situation.environment
    further = environment.network.further_zones
    wanted = (environment.network.zone_id, *situation.cluster.second_zones, *further)
    answer = situation.client("ec2").describe_availability_zones(AllAvailabilityZones=True)
    zones = {zone["ZoneId"]: zone for zone in answer["AvailabilityZones"] if "ZoneId" in zone}
    for zone_id in dict.fromkeys(wanted):
        what = f"zone {zone_id}"
        zone = zones.get(zone_id)
        if zone is None:
            near = ", ".join(sorted(zones))
            yield Row(what, "red", f"{environment.region} has no such zone", f"zone ids there: {near}")
            continue
        name, opted = zone.get("ZoneName", ""), zone.get("OptInStatus", "opt-in-not-required")
        state = zone.get("State", "available")
        if opted == "not-opted-in":
            yield Row(
                what, "red", f"{name} is not opted in",
                f"aws ec2 modify-availability-zone-group --group-name {zone.get('GroupName', name)} "
                f"--opt-in-status opted-in --region {environment.region}",
            )  # fmt: skip
        elif state == "available":
            yield Row(what, "green", f"is {name} in this account")
        elif state in ("information", "impaired", "unavailable", "constrained"):
            yield Row(what, "yellow", f"{name} is {state}", "see the AWS Health Dashboard")
        else:
            yield Row(what, "unknown", f"{name} has the state {state}, unknown to this release")


def _offerings(situation: Situation) -> Iterator[Row]:
    wanted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group in situation.cluster.groups.values():
        for name in dict.fromkeys((group.settings.instance_type, *group.settings.instance_types)):
            wanted[group.zone_id, name].append(group.name)
    types = sorted({name for _, name in wanted})
    pages = (
        situation.client("ec2")
        .get_paginator("describe_instance_type_offerings")
        .paginate(LocationType="availability-zone-id", Filters=[{"Name": "instance-type", "Values": types}])
    )
    offered: dict[str, set[str]] = defaultdict(set)
    for page in pages:
        for row in page["InstanceTypeOfferings"]:
            offered[row["InstanceType"]].add(row["Location"])
    own = {group.settings.instance_type for group in situation.cluster.in_account.values()}
    home = situation.environment.network.zone_id
    for zone, name in sorted(wanted, key=lambda one: (one[0] != home, one)):
        if zone in offered[name]:
            yield Row(f"{name} in {zone}", "green", f"EC2 offers it ({', '.join(wanted[zone, name])})")
            continue
        elsewhere = ", ".join(sorted(offered[name]))
        yield Row(
            f"{name} in {zone}",
            "red" if name in own else "yellow",
            f"EC2 does not offer it to {', '.join(wanted[zone, name])}"
            + ("" if name in own else "; HyperPod may still have it by a plan"),
            f"zones of the Region that have it: {elsewhere or 'none'}",
        )
