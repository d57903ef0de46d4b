"""Reservations, Capacity Blocks and training plans against the groups that name them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from hyperpod_service import answer
from preflight_account import NOW, OWNER, World, rows_of, shipped

from ultracluster.account.preflight import Row, capacity
from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, Reservation, TrainingPlan

pytestmark = pytest.mark.usefixtures("aws_account")

CR = "cr-0123456789abcdef0"
PLAN = f"arn:aws:sagemaker:us-east-2:{OWNER}:training-plan/foundation-model-q1"


def environment(name: str, group: str, value: Any) -> Environment:
    made = shipped(name)
    changed = made.node_groups[group].model_copy(update={"capacity": value})
    return made.model_copy(update={"node_groups": {**made.node_groups, group: changed}})


def ask(world: World) -> dict[str, Row]:
    rows = rows_of(capacity, world)
    return {row.what.removeprefix(f"{CR} ").removeprefix("foundation-model-q1 "): row for row in rows}


def reservation(**changes: Any) -> dict[str, Any]:
    made = {
        "CapacityReservationId": CR,
        "AvailabilityZoneId": "use2-az2",
        "InstanceType": "p6-b200.48xlarge",
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "State": "active",
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 4,
        "InstanceMatchCriteria": "targeted",
        "StartDate": NOW - timedelta(days=1),
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


BLOCK = {"ReservationType": "capacity-block", "EndDate": NOW + timedelta(days=30)}


@pytest.mark.parametrize(
    ("changes", "what", "level", "says"),
    [
        ({}, "state", "green", "active"),
        ({}, "zone", "green", "use2-az2"),
        ({}, "count", "green", "4 instances, 4 free, 4 needed"),
        ({"State": "scheduled", "StartDate": NOW + timedelta(days=3)}, "state", "yellow", "2026-11-24"),
        ({"State": "payment-pending"}, "state", "yellow", "payment-pending"),
        ({"State": "payment-failed"}, "state", "red", "payment-failed"),
        ({"State": "expired", "EndDate": NOW - timedelta(days=1)}, "state", "red", "expired"),
        ({"EndDate": NOW - timedelta(hours=1)}, "state", "red", "active"),
        ({"EndDate": NOW + timedelta(days=2)}, "state", "yellow", "until 2026-11-23"),
        ({"State": "pondering"}, "state", "unknown", "pondering"),
        ({"AvailabilityZoneId": "use2-az1"}, "zone", "red", "is in use2-az1"),
        ({"AvailabilityZoneId": None}, "zone", "unknown", "without an id"),
        (
            {"InstanceType": "p5.48xlarge"},
            "type",
            "red",
            "holds p5.48xlarge, train asks for p6-b200.48xlarge",
        ),
        ({"InstancePlatform": "Windows"}, "platform", "red", "is for Windows"),
        ({"InstancePlatform": "Ubuntu Pro"}, "platform", "yellow", "is for Ubuntu Pro"),
        ({"Tenancy": "dedicated"}, "tenancy", "red", "is dedicated"),
        ({"TotalInstanceCount": 3, "AvailableInstanceCount": 3}, "count", "red", "3 instances"),
        ({"AvailableInstanceCount": 1}, "count", "yellow", "4 instances, 1 free"),
        ({"ReservationType": "default"}, "kind", "red", "is a plain reservation"),
    ],
)
def test_a_capacity_block(changes: dict[str, Any], what: str, level: str, says: str) -> None:
    world = World(environment("pcs-p6-b200", "train", CapacityBlock(kind="capacity-block", id=CR)))
    world.reservations = [reservation(**{**BLOCK, **changes})]
    rows = ask(world)
    assert rows[what].level == level and says in rows[what].found
    assert (rows[what].do == "") == (level == "green")
    bad = {key for key, row in rows.items() if row.level != "green"} - {"start of train"}
    assert bad == ({what} if level != "green" else set())


LATER = NOW + timedelta(days=3)
WRITTEN = f"{LATER:%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize(
    ("base", "starts", "begins", "level", "says"),
    [
        ("eks-p5en", None, LATER, "red", f'write `starts: "{WRITTEN}"`'),
        ("eks-p5en", WRITTEN, LATER, "green", ""),
        ("eks-p5en", "2027-05-01T11:30:00Z", LATER, "red", f'write `starts: "{WRITTEN}"`'),
        ("eks-p5en", WRITTEN, NOW - timedelta(days=1), "yellow", "remove `starts`"),
        ("eks-p5en", None, NOW - timedelta(days=1), None, ""),
        ("pcs-p6-b200", None, LATER, "red", "write `count: 0` and `max_count: "),
        ("parallelcluster-gb200", None, LATER, None, ""),
    ],
)
def test_a_group_of_a_block_that_has_not_begun(
    base: str, starts: str | None, begins: datetime, level: str | None, says: str
) -> None:
    group = "gb200" if "gb200" in base else "train"
    world = World(environment(base, group, CapacityBlock(kind="capacity-block", id=CR, starts=starts)))
    world.reservations = [reservation(**{**BLOCK, "StartDate": begins})]
    row = ask(world).get(f"start of {group}")

    assert (row.level if row else None) == level
    assert not row or says in row.do


ARN = f"arn:aws:ec2:us-east-2:{OWNER}:placement-group/mine"


@pytest.mark.parametrize(
    ("made_in", "wanted", "level"),
    [
        (None, None, None),
        (ARN, "mine", None),
        (ARN, None, "red"),
        (None, "mine", "red"),
        (ARN, "other", "red"),
    ],
)
def test_the_placement_group_of_a_reservation(
    made_in: str | None, wanted: str | None, level: str | None
) -> None:
    value = Reservation(kind="reservation", id=CR, placement_group=wanted)
    world = World(environment("pcs-p6-b200", "train", value))
    world.reservations = [reservation(PlacementGroupArn=made_in)]
    row = ask(world).get("placement group")
    assert (row.level if row else None) == level
    if row and made_in:
        assert "`placement_group: mine`" in row.do


@pytest.mark.parametrize(
    ("os", "platform", "level"),
    [
        ("ubuntu2204", "Linux/UNIX", None),
        ("ubuntu2204", "Red Hat Enterprise Linux", "red"),
        ("ubuntu2204", "Ubuntu Pro", "red"),
        ("ubuntu2204", "Windows", "red"),
        ("ubuntu2204", None, "unknown"),
        ("rhel9", "Red Hat Enterprise Linux", None),
        ("rhel9", "Linux/UNIX", "red"),
    ],
)
def test_a_reservation_has_the_platform_that_nodes_are_billed_as(
    os: str, platform: str | None, level: str | None
) -> None:
    made = environment("parallelcluster-p5", "reserved", Reservation(kind="reservation", id=CR))
    world = World(made.model_copy(update={"orchestrator": made.orchestrator.model_copy(update={"os": os})}))
    world.reservations = [
        reservation(InstanceType="p5.48xlarge", AvailabilityZoneId="usw2-az2", InstancePlatform=platform)
    ]
    row = ask(world).get("platform")
    assert (row.level if row else None) == level
    if row and level == "red":
        assert f"is for {platform}, the nodes of reserved are " in row.found


def test_only_the_nodes_of_a_block_end_with_it() -> None:
    """EC2 User Guide: instances of a plain reservation run on after its end."""
    soon = {"EndDate": NOW + timedelta(days=2)}
    for value, more, says in (
        (Reservation(kind="reservation", id=CR), {}, "nodes run on after"),
        (CapacityBlock(kind="capacity-block", id=CR), BLOCK, "its instances are ended shortly before"),
    ):
        world = World(environment("pcs-p6-b200", "train", value))
        world.reservations = [reservation(**{**more, **soon})]
        row = ask(world)["state"]
        assert (row.level, says in row.do) == ("yellow", True), row


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"InstancePlatform": "Windows"}, "is for Windows"),
        ({"Tenancy": "dedicated"}, "its tenancy is dedicated"),
        ({"PlacementGroupArn": ARN}, "was made in mine"),
    ],
)
def test_open_reservations_that_nodes_do_not_match_are_not_counted(
    changes: dict[str, Any], says: str
) -> None:
    world = World(environment("pcs-p6-b200", "train", Reservation(kind="reservation")))
    world.reservations = [reservation(InstanceMatchCriteria="open", **changes)]
    rows = ask(world)
    assert rows["for train"].level == "yellow" and f"is not counted: {says}" in rows["for train"].found
    assert "no active one" in rows["open reservations for train"].found


def test_a_block_is_not_a_reservation() -> None:
    world = World(environment("pcs-p6-b200", "train", Reservation(kind="reservation", id=CR)))
    world.reservations = [reservation(**BLOCK)]
    assert "`kind: capacity-block`" in ask(world)["kind"].do


@pytest.mark.parametrize(
    ("lent", "said", "level"),
    [(True, True, None), (True, False, "red"), (None, True, "red"), (None, False, None)],
)
def test_whether_a_reservation_is_interruptible(lent: bool | None, said: bool, level: str | None) -> None:
    value = Reservation(kind="reservation", id=CR, interruptible=said)
    world = World(environment("pcs-p6-b200", "train", value))
    world.reservations = [reservation(Interruptible=lent)]
    row = ask(world).get("interruptible")
    assert (row.level if row else None) == level
    if row:
        assert f"`interruptible: {str(bool(lent)).lower()}`" in row.do


def test_a_reservation_that_is_not_there() -> None:
    world = World(environment("pcs-p6-b200", "train", CapacityBlock(kind="capacity-block", id=CR)))
    (row,) = ask(world).values()
    assert row.level == "red" and "no such reservation" in row.found


def test_the_hardware_of_an_ultraserver_block() -> None:
    world = World(environment("pcs-p6-b200", "train", CapacityBlock(kind="capacity-block", id=CR)))
    world.reservations = [reservation(CapacityBlockId="cb-0123456789abcdef0", **BLOCK)]
    world.blocks = [
        {
            "CapacityBlockId": "cb-0123456789abcdef0",
            "InterconnectStatus": "impaired",
            "TotalUnavailableCapacity": 1,
        }
    ]
    row = ask(world)["hardware"]
    assert row.level == "yellow" and "1 instances unavailable, interconnect impaired" in row.found
    world.refuse("ec2", "DescribeCapacityBlockStatus", "UnauthorizedOperation")
    assert any("DescribeCapacityBlockStatus is not allowed" in row.found for row in ask(world).values())


@pytest.mark.parametrize(
    ("changes", "level", "says"),
    [
        ({"InstanceMatchCriteria": "open"}, "green", "4 instances, 4 free"),
        ({"InstanceMatchCriteria": "open", "TotalInstanceCount": 2}, "red", "2 instances"),
        ({"InstanceMatchCriteria": "targeted"}, "yellow", "no active one"),
        ({"InstanceMatchCriteria": "open", "AvailabilityZoneId": "use2-az3"}, "yellow", "no active one"),
        ({"InstanceMatchCriteria": "open", "State": "cancelled"}, "yellow", "no active one"),
    ],
)
def test_open_reservations(changes: dict[str, Any], level: str, says: str) -> None:
    world = World(environment("pcs-p6-b200", "train", Reservation(kind="reservation")))
    world.reservations = [reservation(**changes)]
    row = ask(world)["open reservations for train"]
    assert row.level == level and says in row.found


def test_a_resource_group_of_reservations() -> None:
    groups = boto3.client("resource-groups", "us-east-2")
    made = groups.create_group(
        Name="blocks",
        Configuration=[
            {"Type": "AWS::EC2::CapacityReservationPool"},
            {
                "Type": "AWS::ResourceGroups::Generic",
                "Parameters": [
                    {"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}
                ],
            },
        ],
    )
    arn = made["Group"]["GroupArn"]
    value = Reservation(kind="reservation", resource_group_arn=arn)
    world = World(environment("pcs-p6-b200", "train", value))

    listed: list[dict[str, Any]] = []
    answer(
        world.account.client("resource-groups"),
        "ListGroupResources",
        lambda asked: {"Resources": list(listed)},
    )
    assert ask(world)["resource group of train"].level == "red"
    member = f"arn:aws:ec2:us-east-2:{OWNER}:capacity-reservation/{CR}"
    listed.append({"Identifier": {"ResourceArn": member}})
    world.reservations = [reservation()]
    assert ask(world)["reservations of the resource group for train"].level == "green"


def plan(**changes: Any) -> dict[str, Any]:
    made = {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "foundation-model-q1",
        "Status": "Active",
        "StartTime": NOW - timedelta(days=1),
        "EndTime": NOW + timedelta(days=30),
        "TotalInstanceCount": 16,
        "AvailableInstanceCount": 16,
        "TargetResources": ["hyperpod-cluster"],
        "ReservedCapacitySummaries": [
            {
                "ReservedCapacityArn": f"arn:aws:sagemaker:us-east-2:{OWNER}:reserved-capacity/abcdefgh",
                "InstanceType": "ml.p5en.48xlarge",
                "TotalInstanceCount": 16,
                "Status": "Active",
                "AvailabilityZoneId": "use2-az2",
            }
        ],
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def part(**changes: Any) -> dict[str, Any]:
    made = {**plan()["ReservedCapacitySummaries"][0], **changes}
    return {"ReservedCapacitySummaries": [{key: value for key, value in made.items() if value is not None}]}


@pytest.mark.parametrize(
    ("changes", "what", "level", "says"),
    [
        ({}, "state", "green", "Active"),
        ({}, "zone", "green", "use2-az2"),
        ({}, "count", "green", "16 instances, 16 free, 16 needed"),
        ({"Status": "Scheduled"}, "state", "yellow", "Scheduled"),
        ({"Status": "Pending"}, "state", "yellow", "Pending"),
        ({"Status": "Expired"}, "state", "red", "Expired"),
        ({"Status": "Failed", "StatusMessage": "no capacity"}, "state", "red", "Failed, no capacity"),
        ({"Status": "Pondering"}, "state", "unknown", "Pondering"),
        ({"EndTime": NOW + timedelta(days=2)}, "state", "yellow", "2026-11-23"),
        ({"EndTime": NOW - timedelta(days=2)}, "state", "red", "Active"),
        ({"TrainingPlanArn": PLAN.replace("q1", "q2")}, "state", "red", "Active"),
        ({"TargetResources": ["training-job"]}, "target", "red", "is for training-job"),
        (part(AvailabilityZoneId="use2-az3"), "zone", "red", "is in use2-az3, its nodes in use2-az2"),
        (part(AvailabilityZoneId=None, AvailabilityZone="us-east-2b"), "zone", "green", "use2-az2"),
        (part(AvailabilityZoneId=None, AvailabilityZone="us-east-2a"), "zone", "red", "is in use2-az1"),
        (part(AvailabilityZoneId=None), "zone", "unknown", "names no zone yet"),
        (part(InstanceType="ml.p5.48xlarge"), "type", "red", "holds p5.48xlarge; train asks for p5en"),
        ({"TotalInstanceCount": 8}, "count", "red", "8 instances"),
        ({"AvailableInstanceCount": 0}, "count", "yellow", "16 instances, 0 free"),
    ],
)
def test_a_training_plan(changes: dict[str, Any], what: str, level: str, says: str) -> None:
    world = World(environment("prod", "train", TrainingPlan(kind="training-plan", arn=PLAN)))
    world.plans = {"foundation-model-q1": plan(**changes)}
    rows = ask(world)
    assert rows[what].level == level and says in rows[what].found
    bad = {key for key, row in rows.items() if row.level != "green"}
    assert bad == ({what} if level != "green" else set())


def test_groups_that_share_a_plan_are_added_up() -> None:
    made = environment("prod", "train", TrainingPlan(kind="training-plan", arn=PLAN))
    groups = {**made.node_groups, "more": made.node_groups["train"].model_copy(update={"count": 1})}
    world = World(made.model_copy(update={"node_groups": groups}))
    world.plans = {"foundation-model-q1": plan()}
    assert "17 needed" in ask(world)["count"].found and ask(world)["count"].level == "red"


def test_nothing_is_asked_for_capacity_on_demand() -> None:
    world = World(shipped("dev"))
    assert ask(world) == {}
