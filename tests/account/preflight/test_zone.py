"""The zone of the file, and the instance types that it offers."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import answer
from preflight_account import World, ask, shipped

from ultracluster.account.preflight import zone

pytestmark = pytest.mark.usefixtures("aws_account")


def test_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = shipped("dev")
    there = environment.network.model_copy(update={"zone_id": "usw2-az9"})
    row = ask(zone, World(environment.model_copy(update={"network": there})))["zone usw2-az9"]
    assert row.level == "red" and "usw2-az2" in row.do
    states: list[dict[str, Any]] = [
        {"ZoneId": "usw2-az2", "ZoneName": "us-west-2a", "State": "available", "OptInStatus": "not-opted-in"}
    ]
    world = World(environment)
    answer(
        world.account.client("ec2"), "DescribeAvailabilityZones", lambda asked: {"AvailabilityZones": states}
    )
    assert "modify-availability-zone-group" in ask(zone, world)["zone usw2-az2"].do
    for state, level in (("impaired", "yellow"), ("pondering", "unknown")):
        states[0] = {"ZoneId": "usw2-az2", "ZoneName": "us-west-2a", "State": state}
        assert ask(zone, world)["zone usw2-az2"].level == level


def test_offerings_elsewhere_are_named() -> None:
    offered = [
        {"InstanceType": "trn2.48xlarge", "LocationType": "availability-zone-id", "Location": "use2-az1"},
        {"InstanceType": "m5.2xlarge", "LocationType": "availability-zone-id", "Location": "use2-az3"},
    ]
    for name, level in (
        ("eks-trn2", "red"),
        ("trainium", "yellow"),
    ):  # HyperPod's nodes are not the account's
        world = World(shipped(name))
        answer(
            world.account.client("ec2"),
            "DescribeInstanceTypeOfferings",
            lambda asked: {"InstanceTypeOfferings": offered},
        )
        row = ask(zone, world)[f"trn2.48xlarge in {world.environment.network.zone_id}"]
        assert row.level == level and "use2-az1" in row.do


def test_types_that_a_local_zone_lacks_are_named_with_group_and_zones() -> None:
    def offered(asked: Any) -> dict[str, Any]:
        rows = [("m7g.4xlarge", "use1-az4"), ("m7g.xlarge", "use1-az6")]
        return {"InstanceTypeOfferings": [{"InstanceType": one, "Location": zone} for one, zone in rows]}

    world = World(shipped("parallelcluster-gb200"))
    answer(world.account.client("ec2"), "DescribeInstanceTypeOfferings", offered)
    found = ask(zone, world)

    assert found["m7g.4xlarge in use1-az4"].level == "green"
    login, nodes = found["m7g.xlarge in use1-az4"], found["p6e-gb200.36xlarge in use1-dfw2-az1"]
    assert (login.level, nodes.level) == ("red", "red")
    assert "does not offer it to login" in login.found and login.do.endswith("use1-az6")
    assert "does not offer it to gb200" in nodes.found and nodes.do.endswith("none")
