"""Images and add-ons that the account has, against those that the file names."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import answer
from preflight_account import OWNER, World, ask, shipped

from ultracluster.account.preflight import software
from ultracluster.account.preflight.software import wanted_addons
from ultracluster.config.storage import (
    JobBucket,
)
from ultracluster.model import resolve

pytestmark = pytest.mark.usefixtures("aws_account")


def image(**changes: Any) -> Any:
    made = {
        "ImageId": "ami-0123456789abcdef0",
        "State": "available",
        "Name": "nodes",
        "OwnerId": OWNER,
        "Architecture": "x86_64",
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 100}}],
        **changes,
    }
    return lambda asked: {"Images": [made] if made["State"] else []}


def with_image(name: str) -> World:
    environment = shipped(name)
    groups = {
        key: group.model_copy(update={"image": "ami-0123456789abcdef0"})
        for key, group in environment.node_groups.items()
    }
    return World(environment.model_copy(update={"node_groups": groups}))


@pytest.mark.parametrize(
    ("changes", "what", "level"),
    [
        ({}, "", "green"),
        ({"State": "pending"}, "", "yellow"),
        ({"State": "deregistered"}, "", "red"),
        ({"State": ""}, "", "red"),
        ({"Architecture": "arm64"}, " architecture", "red"),
        ({"RootDeviceName": "/dev/xvda", "BlockDeviceMappings": []}, " root device", "red"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 900}}]},
            " size",
            "red",
        ),
    ],
)
def test_images(changes: dict[str, Any], what: str, level: str) -> None:
    world = with_image("pcs-p6-b200")
    answer(world.account.client("ec2"), "DescribeImages", image(**changes))
    rows = ask(software, world)
    assert rows[f"ami-0123456789abcdef0{what}"].level == level


def test_the_image_that_a_parameter_holds_is_looked_at() -> None:
    world = World(shipped("pcs-p6-b200"))
    asked: list[Any] = []
    parameter = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"

    def look(request: dict[str, Any]) -> Any:
        asked.append(request["ImageIds"])
        return image(Architecture="arm64")(request)

    answer(world.account.client("ec2"), "DescribeImages", look)
    answer(
        world.account.client("ssm"),
        "GetParameter",
        lambda request: {"Parameter": {"Name": request["Name"], "Value": "ami-0123456789abcdef0"}},
    )
    rows = ask(software, world)

    assert asked == [["ami-0123456789abcdef0"]]
    assert rows[f"{parameter} parameter"].found == "is ami-0123456789abcdef0 now"
    assert rows["ami-0123456789abcdef0 architecture"].level == "red"


def test_hyperpod_takes_images_of_its_own_account() -> None:
    world = with_image("dev")
    answer(world.account.client("ec2"), "DescribeImages", image(OwnerId="999999999999"))
    assert ask(software, world)["ami-0123456789abcdef0 owner"].level == "red"


@pytest.mark.parametrize("name", ["eks-p5en", "hyperpod-eks-p5"])
def test_addons(name: str) -> None:
    world = World(shipped(name))
    wanted = wanted_addons(resolve(world.environment))
    assert "aws-mountpoint-s3-csi-driver" not in wanted
    volumes = {"mountpoint_s3": {"runs": JobBucket(bucket="runs")}}
    kind = world.environment.orchestrator.model_copy(update=volumes)
    mounting = world.environment.model_copy(update={"orchestrator": kind})
    assert wanted_addons(resolve(mounting))["aws-mountpoint-s3-csi-driver"] == "v2.7.0-eksbuild.1"
    assert {"vpc-cni", "coredns", "kube-proxy", "aws-fsx-csi-driver"} <= set(wanted)
    world.addons = {addon: [version, "v0.0.1-eksbuild.1"] for addon, version in wanted.items()}
    assert {row.level for row in ask(software, world).values()} == {"green"}
    world.addons["vpc-cni"] = ["v1.0.0-eksbuild.1"]
    row = ask(software, world)["add-on vpc-cni"]
    assert row.level == "red" and "v1.0.0-eksbuild.1" in row.do
