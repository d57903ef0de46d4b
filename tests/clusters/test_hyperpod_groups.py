"""Groups of HyperPod in other zones, restricted ones and pinned ones: what the templates say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from project import ROOT
from rules_support import changed, loaded
from templates import Template, many, statements, templates_alone

from ultracluster import HyperPodSlurmCluster
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.source import read
from ultracluster.network.existing import existing_subnet

SHARED = {
    "orchestrator.restricted_lustre": {
        "capacity_gib": 2400,
        "throughput_mbps_per_tib": 125,
        "keep": False,
    },
    "node_groups.tune.restricted.lustre": ...,
}


def made(name: str, changes: dict[str, Any] | None = None) -> dict[str, Template]:
    """Templates by the last part of the stack's name."""
    data = changed(read(ROOT / "environments" / "wishes" / f"{name}.yaml").data, changes or {})
    config = loaded(data).environment
    found = templates_alone(config)
    return {stack.removeprefix(f"{config.name}-"): template for stack, template in found.items()}


@pytest.fixture(scope="module")
def groups() -> dict[str, Template]:
    return made("groups")


@pytest.fixture(scope="module")
def nova() -> dict[str, Template]:
    return made("restricted-groups", SHARED)


def of(template: Template, kind: str) -> Iterator[dict[str, Any]]:
    return (one["Properties"] for one in template["Resources"].values() if one["Type"] == kind)


def by_name(template: Template) -> dict[str, dict[str, Any]]:
    (cluster,) = of(template, "AWS::SageMaker::Cluster")
    rows = [*cluster.get("InstanceGroups", []), *cluster.get("RestrictedInstanceGroups", [])]
    return {one["InstanceGroupName"]: one for one in rows}


def test_a_group_in_another_zone_has_the_subnet_of_that_zone(groups: dict[str, Template]) -> None:
    (cluster,) = of(groups["cluster"], "AWS::SageMaker::Cluster")
    own = {name: one.get("OverrideVpcConfig", {}) for name, one in by_name(groups["cluster"]).items()}

    assert own["train"] == own["serve"] == {}
    for zone, name in (("use2-az1", "spot-1"), ("use2-az3", "spot-3")):
        found = own[name] or {}
        assert found["Subnets"] == [{"Fn::ImportValue": f"groups-network-NodeSubnetId-{zone}"}]
        assert found["SecurityGroupIds"] == cluster["VpcConfig"]["SecurityGroupIds"]


def test_each_zone_has_a_subnet_a_way_out_and_s3(groups: dict[str, Template]) -> None:
    zones = {one["AvailabilityZoneId"]: one["CidrBlock"] for one in of(groups["network"], "AWS::EC2::Subnet")}
    assert zones["use2-az3"] == "10.112.160.0/19"
    (gateway,) = (
        one for one in of(groups["egress"], "AWS::EC2::VPCEndpoint") if one["VpcEndpointType"] == "Gateway"
    )
    out = [one for one in of(groups["egress"], "AWS::EC2::Route") if "NatGatewayId" in one]
    tables = [one["RouteTableId"] for one in out]
    assert len(tables) == 3 and sorted(map(str, gateway["RouteTableIds"])) == sorted(map(str, tables))
    assert len({str(one["NatGatewayId"]) for one in out}) == 1


def test_nodes_may_have_interfaces_in_each_of_these_subnets(groups: dict[str, Template]) -> None:
    (attach,) = (one for _, one in statements(groups["cluster"]) if one.get("Sid") == "AttachToVpc")
    for zone in ("", "-use2-az1", "-use2-az3"):
        imported = f"groups-network-NodeSubnetId{zone}'"
        assert imported in str(attach["Resource"]) and imported in str(attach["Condition"])


def test_a_pinned_group_names_its_release_and_others_do_not(groups: dict[str, Template]) -> None:
    pins = {name: one.get("ImageReleaseVersion") for name, one in by_name(groups["cluster"]).items()}
    assert pins == {"train": "2.1.0", "serve": None, "spot-1": None, "spot-3": None}


def test_a_restricted_group_is_what_the_api_has_for_it(nova: dict[str, Template]) -> None:
    (cluster,) = of(nova["cluster"], "AWS::SageMaker::Cluster")

    assert "InstanceGroups" not in cluster and "NodeProvisioningMode" not in cluster
    (group,) = cluster["RestrictedInstanceGroups"]
    assert not {"LifeCycleConfig", "KubernetesConfig", "EnvironmentConfig", "ImageId"} & group.keys()
    assert cluster["RestrictedInstanceGroupsConfig"] == {
        "SharedEnvironmentConfig": {
            "FSxLustreConfig": {"SizeInGiB": 2400, "PerUnitStorageThroughput": 125},
            "FSxLustreDeletionPolicy": "DeleteIfNotUsed",
        }
    }


def test_its_role_reads_the_data_and_writes_the_results(nova: dict[str, Template]) -> None:
    rights = {one["Sid"]: one for _, one in statements(nova["cluster"]) if "Sid" in one}

    assert "example-nova-data/*" in str(rights["ReadData"]["Resource"])
    assert many(rights["ReadData"]["Action"]) == ["s3:GetObject"]
    assert "example-nova-results/*" in str(rights["WriteData"]["Resource"])
    assert "s3:DeleteObject" not in str(rights["WriteData"])
    listed = str(rights["ListData"]["Resource"])
    assert "example-nova-data" in listed and "example-nova-results" in listed


def test_an_app_gives_the_subnets_of_the_zones_that_groups_name() -> None:
    stack = Stack(App(), "Train", env=Environment(account="111122223333", region="us-east-2"))
    near, far = (
        existing_subnet(stack, name, f"subnet-{digit * 17}", route_table_id="rtb-0123456789abcdef0")
        for name, digit in (("Near", "0"), ("Far", "1"))
    )
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    node_groups = {
        "head": NodeGroup(role="controller", instance_type="m5.2xlarge", count=1),
        "far": NodeGroup(role="compute", instance_type="g6e.12xlarge", count=2, zone_id="use2-az1"),
    }

    def cluster(name: str, **more: Any) -> HyperPodSlurmCluster:
        return HyperPodSlurmCluster(
            stack, name, subnet=near, security_groups=[group], node_groups=node_groups, **more
        )

    found = cluster("Given", further_subnets={"use2-az1": far})
    (override,) = (
        one["overrideVpcConfig"]
        for one in stack.resolve(found.resource.instance_groups)
        if "overrideVpcConfig" in one
    )
    assert override["subnets"] == [far.subnet_id]
    with pytest.raises(ValueError, match="use2-az1"):
        cluster("Lacking")


def test_no_second_volume_where_the_image_mounts_the_local_disks(
    groups: dict[str, Template], nova: dict[str, Template]
) -> None:
    for name, group in by_name(groups["cluster"]).items():
        # the root volume's key alone
        assert [one["EbsVolumeConfig"].get("VolumeSizeInGB") for one in group["InstanceStorageConfigs"]] == [
            None
        ], name
    (tune,) = by_name(nova["cluster"]).values()
    assert [one["EbsVolumeConfig"]["VolumeSizeInGB"] for one in tune["InstanceStorageConfigs"]] == [850]
