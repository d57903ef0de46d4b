"""Training plans of HyperPod: there, in the zone, of the type, large enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ultracluster.account.preflight.reservations import SOON, Groups, count_row, day
from ultracluster.account.preflight.rows import Level, Row, Situation

_STATES: Mapping[str, Level] = {
    "Active": "green", "Scheduled": "yellow", "Pending": "yellow", "Expired": "red", "Failed": "red",
}  # fmt: skip


def training_plan(situation: Situation, arn: str, groups: Groups) -> Iterator[Row]:
    name = arn.rpartition("/")[2]
    plan = situation.client("sagemaker").describe_training_plan(TrainingPlanName=name)
    yield _state(situation, name, plan, arn)
    targets = plan.get("TargetResources", [])
    if targets and "hyperpod-cluster" not in targets:
        yield Row(
            f"{name} target", "red", f"is for {', '.join(targets)}",
            "a plan's target is fixed: search and buy one with the target hyperpod-cluster",
        )  # fmt: skip
    capacities: list[dict[str, Any]] = plan.get("ReservedCapacitySummaries", [])
    for wanted in dict.fromkeys(situation.cluster.groups[group_name].zone_id for group_name, _ in groups):
        yield from _zone(situation, name, capacities, wanted)
    held = {str(capacity.get("InstanceType", "")).removeprefix("ml.") for capacity in capacities}
    need = 0
    for group_name, group in groups:
        need += situation.cluster.groups[group_name].most_nodes
        if capacities and group.instance_type not in held:
            yield Row(
                f"{name} type", "red",
                f"holds {', '.join(sorted(held))}; {group_name} asks for {group.instance_type}",
                "they never match: change one of them",
            )  # fmt: skip
    total = plan.get(
        "TotalInstanceCount", sum(capacity.get("TotalInstanceCount", 0) for capacity in capacities)
    )
    yield count_row(f"{name} count", need, total, plan.get("AvailableInstanceCount", total))


def _state(situation: Situation, name: str, plan: Mapping[str, Any], arn: str) -> Row:
    status, end, start = str(plan.get("Status", "")), plan.get("EndTime"), plan.get("StartTime")
    level = _STATES.get(status, "unknown")
    text = ", ".join(
        part
        for part in (
            status or "no status",
            str(plan.get("StatusMessage", "")),
            f"{day(start)} to {day(end)}" if start and end else "",
        )
        if part
    )
    do = ""
    if plan.get("TrainingPlanArn", arn) != arn:
        level, do = "red", f"another plan of that name: {plan.get('TrainingPlanArn')}"
    elif level == "red" or (end and end <= situation.now()):
        level, do = "red", "it has ended: `ultracluster capacity search` lists what is offered"
    elif status == "Scheduled" and start:
        do = f"nodes come from {day(start)} on; the cluster can be made before"
    elif status == "Pending":
        do = "wait until it is Scheduled or Active: HyperPod refuses it until then"
    elif level == "unknown":
        do = "a status that this release does not know: see the SageMaker console"
    elif end and end - situation.now() < SOON:
        level, do = "yellow", "HyperPod takes the instances back an hour before the end"
    return Row(f"{name} state", level, text, do, starts=start if start and start > situation.now() else None)


def _zone(
    situation: Situation, name: str, capacities: Sequence[Mapping[str, Any]], wanted: str
) -> Iterator[Row]:
    zones = {
        str(capacity["AvailabilityZoneId"]) for capacity in capacities if capacity.get("AvailabilityZoneId")
    }
    names = {
        str(capacity["AvailabilityZone"])
        for capacity in capacities
        if capacity.get("AvailabilityZone") and not capacity.get("AvailabilityZoneId")
    }
    if names:  # a name means another zone in each account: only this account's ids count
        answer = situation.client("ec2").describe_availability_zones(
            ZoneNames=sorted(names), AllAvailabilityZones=True
        )
        zones |= {str(zone["ZoneId"]) for zone in answer["AvailabilityZones"]}
    if zones == {wanted}:
        yield Row(f"{name} zone", "green", wanted)
    elif not zones:
        yield Row(f"{name} zone", "unknown", "the plan names no zone yet", "look again when it is Scheduled")
    else:
        found = ", ".join(sorted(zones))
        yield Row(
            f"{name} zone", "red", f"is in {found}, its nodes in {wanted}",
            f"write `zone_id: {sorted(zones)[0]}`: a new zone is a new subnet and a new cluster",
        )  # fmt: skip
