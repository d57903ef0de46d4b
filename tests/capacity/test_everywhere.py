"""Capacity in every Region: ranked, with what the account holds, and no Region left out in silence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_fixtures import keys
from botocore.exceptions import EndpointConnectionError
from capacity_market import AFTER, CLOSED, PREFIXES, World, block, denied, plan
from capacity_market import world as empty_world
from hyperpod_service import refusal

from ultracluster.capacity.everywhere import Everywhere, Regions, everywhere
from ultracluster.capacity.search import Wish, wish_for, wishes_for

__all__ = ["keys"]


def find(world: World, *wishes: Wish, named: tuple[str, ...] = ()) -> Everywhere:
    asked = list(wishes) or wishes_for("p5.48xlarge", 8, days=14, after=AFTER)
    return everywhere(world.account, asked, Regions.of(world.account, named))


def ids(found: Everywhere) -> list[str]:
    return [row.id for row in found.rows]


def reasons(found: Everywhere) -> dict[tuple[str, str], str]:
    return {(one.region, one.what): one.why for one in found.unasked}


def test_ranked_by_price_then_start_over_both_kinds_and_all_regions() -> None:
    world = empty_world()
    world.blocks = {
        "us-east-1": [block("cb-dear", "us-east-1a", "90000"), block("cb-early", "us-east-1b", "80000")],
        "eu-west-3": [block("cb-cheap", "eu-west-3c", "70000")],
    }
    world.plans = {"us-west-2": [plan("tpo-late", "us-west-2b", "80000")]}
    found = find(world)
    assert ids(found) == ["cb-cheap", "cb-early", "tpo-late", "cb-dear"]
    first = found.rows[0]
    assert (first.region, first.zones, first.accelerators) == ("eu-west-3", ("euw3-az3",), 64)
    assert first.in_all == 70000 and first.per_accelerator_hour == pytest.approx(70000 / 336 / 64)
    assert found.asked == sorted(PREFIXES)


def test_regions_that_are_closed_or_without_hyperpod_have_rows() -> None:
    found = find(empty_world())
    assert reasons(found) == {
        (CLOSED, ""): "the account has not enabled it (AWS console, Account, AWS Regions)",
        ("eu-west-3", "training-plan"): "HyperPod is not there, by the catalogue",
    }
    only = find(empty_world(), named=("us-east-1", CLOSED, "us-gov-west-1"))
    assert only.asked == ["us-east-1"]
    assert reasons(only)["us-gov-west-1", ""] == "AWS names no such Region to this account"


@pytest.mark.parametrize(
    ("what", "error", "lost", "says"),
    [
        ("blocks", denied("DescribeCapacityBlockOfferings"), "capacity-block", "is not allowed"),
        ("plans", refusal("ThrottlingException", "Rate exceeded"), "training-plan", "being throttled"),
        ("plans", refusal("UnknownOperationException", ""), "training-plan", "UnknownOperation"),
        ("held", denied("DescribeCapacityReservations"), "reservation", "is not allowed"),
        ("held_plans", refusal("InternalFailure", "\x1b[2J"), "training plans of the account", "\\x1b[2J"),
        ("zones", refusal("AuthFailure", "no"), "", "it does not take these credentials"),
        ("zones", EndpointConnectionError(endpoint_url="https://x"), "", "AWS cannot be reached"),
    ],
)  # fmt: skip
def test_a_failure_costs_its_own_answer_and_is_named(
    what: str, error: Exception, lost: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = empty_world()
    world.blocks = {
        "us-east-1": [block("cb-1", "us-east-1a", "1")],
        "us-west-2": [block("cb-2", "us-west-2a", "2")],
    }
    world.plans = {
        "us-east-1": [plan("tpo-1", "us-east-1a", "3")],
        "us-west-2": [plan("tpo-2", "us-west-2a", "4")],
    }
    if isinstance(error, EndpointConnectionError):

        def fails(**_: Any) -> Any:
            raise error

        monkeypatch.setattr(world.account.client("ec2", "us-west-2"), "describe_availability_zones", fails)
    else:
        world.fails["us-west-2", what] = error
    found = find(world)
    assert says in reasons(found)["us-west-2", lost]
    kept = {"blocks": ["tpo-2"], "plans": ["cb-2"], "zones": []}.get(what, ["cb-2", "tpo-2"])
    assert ids(found) == [
        "cb-1",
        *(["cb-2"] if "cb-2" in kept else []),
        "tpo-1",
        *(["tpo-2"] if "tpo-2" in kept else []),
    ]
    assert ("us-west-2" in found.asked) is (what != "zones")


def test_where_regions_cannot_be_listed_those_of_the_catalogue_are_asked() -> None:
    world = empty_world()
    world.fails["us-east-2", "regions"] = denied("DescribeRegions")
    places = Regions.of(world.account)
    assert {"us-east-1", "eu-west-3", CLOSED} <= set(places.names) and "us-gov-west-1" not in places.names
    assert "those of the catalogue are asked" in places.unasked[0].why


def test_zone_names_stay_where_ids_are_denied() -> None:
    world = empty_world()
    world.blocks = {"us-east-1": [block("cb-1", "us-east-1a", "1")]}
    world.fails["us-east-1", "zones"] = denied("DescribeAvailabilityZones")
    found = find(world)
    assert found.rows[0].zones == ("us-east-1a",) and ("us-east-1", "zone ids") in reasons(found)


def held(name: str, zone: str, **more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": name, "InstanceType": "p5.48xlarge", "AvailabilityZone": zone,
        "TotalInstanceCount": 16, "AvailableInstanceCount": 8, "State": "active", **more,
    }  # fmt: skip


def test_what_the_account_holds_unused_comes_first_and_costs_nothing_more() -> None:
    world = empty_world()
    world.blocks = {"us-east-1": [block("cb-1", "us-east-1a", "1")]}
    world.held = {
        "us-east-2": [
            held("cr-free", "us-east-2a"),
            held("cr-used", "us-east-2a", AvailableInstanceCount=0),
            held("cr-ends", "us-east-2a", EndDate=AFTER + timedelta(days=3)),
            held("cr-few", "us-east-2a", AvailableInstanceCount=3),
            held(
                "cr-later", "us-east-2b", State="scheduled", ReservationType="capacity-block",
                AvailableInstanceCount=0, StartDate=AFTER + timedelta(days=2),
                EndDate=AFTER + timedelta(days=20),
            ),
        ]
    }  # fmt: skip
    arn = "arn:aws:sagemaker:us-west-2:111122223333:training-plan"
    summary = {"InstanceType": "ml.p5.48xlarge", "AvailabilityZone": "us-west-2b", "TotalInstanceCount": 8,
               "ReservedCapacityArn": f"{arn}/x", "Status": "Active"}  # fmt: skip
    row = {"TrainingPlanArn": f"{arn}/mine", "TrainingPlanName": "mine", "Status": "Active",
           "AvailableInstanceCount": 8, "ReservedCapacitySummaries": [summary]}  # fmt: skip
    world.held_plans = {
        "us-west-2": [
            row,
            {**row, "TrainingPlanArn": f"{arn}/jobs", "TargetResources": ["training-job"]},
            {**row, "TrainingPlanArn": f"{arn}/over", "Status": "Expired"},
        ]
    }
    found = find(world)
    assert ids(found) == ["cr-free", f"{arn}/mine", "cr-later", "cb-1", "cr-ends", "cr-few"]
    assert [row.kind for row in found.rows[:3]] == ["reservation", "training-plan", "capacity-block"]
    assert all(row.own and row.in_all is None for row in found.rows[:3]) and not found.rows[3].own
    asked = next(one for name, what, one in world.asked if (name, what) == ("us-east-2", "held"))
    assert asked["Filters"][0] == {"Name": "instance-type", "Values": ["p5.48xlarge"]}


def test_an_offer_that_is_less_than_asked_for_comes_last() -> None:
    world = empty_world()
    few = block("cb-few", "us-east-1a", "1", InstanceCount=4)
    brief = block("cb-brief", "us-east-1a", "1", CapacityBlockDurationHours=240)
    begins_today = block(
        "cb-now", "us-east-1a", "9", CapacityBlockDurationHours=320, CapacityBlockDurationMinutes=30
    )
    world.blocks = {"us-east-1": [few, brief, begins_today]}
    found = find(world)
    assert [(row.id, row.short) for row in found.rows] == [
        ("cb-now", False),
        ("cb-brief", True),
        ("cb-few", True),
    ]
    assert found.rows[0].hours == 320.5  # minutes are in addition to the hours


@pytest.mark.parametrize("price", ["nan", "inf", "-1", "free", ""])
def test_a_price_that_is_none_is_no_offer(price: str) -> None:
    world = empty_world()
    world.blocks = {"us-east-1": [block("cb-1", "us-east-1a", price)]}
    assert ids(find(world)) == []


def test_parts_of_a_block_have_their_own_zones() -> None:
    world = empty_world()
    part = {
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 8,
        "StartDate": AFTER,
        "EndDate": AFTER + timedelta(days=7),
    }
    parts = [{**part, "AvailabilityZone": "us-east-1a"}, {**part, "AvailabilityZoneId": "use1-az6"}]
    world.blocks = {"us-east-1": [block("cb-1", "us-east-1a", "1", CapacityBlockOfferingSegments=parts)]}
    assert find(world).rows[0].zones == ("use1-az1", "use1-az6")


def test_plans_for_training_jobs_give_a_cluster_no_node() -> None:
    world = empty_world()
    world.plans = {"us-east-1": [plan("tpo-1", "us-east-1a", "1", TargetResources=["training-job"])]}
    assert ids(find(world)) == []
    asked = [one for _, what, one in world.asked if what == "plans"]
    assert all(one["TargetResources"] == ["hyperpod-cluster"] for one in asked) and len(asked) == 3


def test_what_aws_sells_is_asked_for_and_what_was_wanted_is_kept() -> None:
    world = empty_world()
    wish = wish_for("capacity-block", "p5.48xlarge", 100, days=15, after=AFTER)
    assert (wish.count, wish.wanted, wish.times, wish.hours, wish.needed_hours) == (
        64,
        100,
        2,
        21 * 24,
        15 * 24,
    )
    world.blocks = {
        "us-east-1": [block("cb-1", "us-east-1a", "10", InstanceCount=64, CapacityBlockDurationHours=504)]
    }
    row = find(world, wish).rows[0]
    assert row.in_all == 20 and not row.short
    assert row.per_accelerator_hour == pytest.approx(10 / 504 / 512)
    asked = next(one for _, what, one in world.asked if what == "blocks")
    assert (asked["InstanceCount"], asked["CapacityDurationHours"]) == (64, 504)
    servers = wish_for("capacity-block", "p6e-gb200.36xlarge", 10, days=1, after=AFTER)
    assert (servers.count, servers.needed, servers.times) == (18, 10, 1)
