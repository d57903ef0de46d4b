"""A network in an app of another team: flat settings, objects out, and what waits for the ways out."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

import pytest
from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from foreign import HOME, foreign_stack, refusal, resources

from ultracluster import ClusterNetwork, LustreFileSystem
from ultracluster.config.network import FurtherZone, Network
from ultracluster.network.cluster_network import NetworkArguments

EXISTING = {"vpc", "subnet", "security_group"}
"""What a file names by id, and an app has as objects."""
THEIRS = FurtherZone(cidr="10.0.144.0/20", subnet_id="subnet-0123456789abcdef0")


def test_a_zone_is_enough(stack: Stack) -> None:
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6")

    assert {
        one["Properties"]["AvailabilityZoneId"] for one in resources(stack, "AWS::EC2::Subnet").values()
    } == {"use1-az6"}
    assert network.vpc.private_subnets[0].subnet_id == network.subnet.subnet_id
    assert network.egress and len(network.egress.endpoints) and len(network.egress.routes) == 1
    assert refusal(stack) == ""


def test_file_systems_take_its_objects(stack: Stack) -> None:
    network = ClusterNetwork(
        stack, "Network", zone_id="use1-az6", second_zone_id="use1-az4", control_plane_zone_id="use1-az4"
    )

    LustreFileSystem(stack, "Scratch", vpc=network.vpc, subnet=network.subnet, capacity_gib=1200)

    for subnets in (network.database_subnets, network.control_plane_subnets):
        assert len({stack.resolve(one.subnet_id)["Fn::GetAtt"][0] for one in subnets}) == 2
        for one in subnets:
            name, attribute = stack.resolve(one.availability_zone)["Fn::GetAtt"]
            assert attribute == "AvailabilityZone" and name.startswith("Network")
    assert refusal(stack) == ""


def test_what_needs_the_internet_waits_for_routes_and_endpoints(stack: Stack) -> None:
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6")
    cluster = CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster")

    cluster.node.add_dependency(network.subnet.internet_connectivity_established)

    (found,) = resources(stack, "AWS::SageMaker::Cluster").values()
    waits = set(found["DependsOn"])
    assert set(resources(stack, "AWS::EC2::VPCEndpoint")) < waits
    assert any("NodeRoute" in name for name in waits)


def test_nodes_in_another_zone_have_a_subnet_there_and_the_same_ways_out(stack: Stack) -> None:
    zones = {"use1-az4": FurtherZone(cidr="10.0.128.0/20"), "use1-az2": THEIRS}
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6", further_zones=zones)
    cluster = CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster")

    cluster.node.add_dependency(network.further_subnets["use1-az4"].internet_connectivity_established)

    made = [one["Properties"] for one in resources(stack, "AWS::EC2::Subnet").values()]
    assert [one["CidrBlock"] for one in made if one["AvailabilityZoneId"] == "use1-az4"] == ["10.0.128.0/20"]
    assert network.further_subnets["use1-az2"].subnet_id == THEIRS.subnet_id
    assert set(network.further_route_table_ids) == {"use1-az4"}, "theirs is not ours to change"
    tables = {network.route_table_id, *network.further_route_table_ids.values()}
    routed = {
        str(one["Properties"]["RouteTableId"])
        for one in resources(stack, "AWS::EC2::Route").values()
        if "NatGatewayId" in one["Properties"]
    }
    assert routed == {str(stack.resolve(one)) for one in tables}
    (gateway,) = (
        one["Properties"]
        for one in resources(stack, "AWS::EC2::VPCEndpoint").values()
        if one["Properties"]["VpcEndpointType"] == "Gateway"
    )
    assert {str(one) for one in gateway["RouteTableIds"]} == routed
    (found,) = resources(stack, "AWS::SageMaker::Cluster").values()
    assert any("NodeRouteuse1az4" in name for name in found["DependsOn"])
    assert refusal(stack) == ""


def test_the_arguments_are_the_fields_of_the_model() -> None:
    hints = get_type_hints(NetworkArguments)
    fields = {name: get_type_hints(Network)[name] for name in Network.model_fields if name not in EXISTING}

    assert set(hints) == set(fields)
    assert {k: v for k, v in hints.items() if k != "extra_endpoints"} == {
        k: v for k, v in fields.items() if k != "extra_endpoints"
    }


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "`zone_id` is missing"),
        ({"zone_id": "use1-az6", "cidr": "10.0.0.0/33"}, "cidr: "),
        ({"zone_id": "use1-az6", "zone": "use1-az6"}, "there is no `zone`"),
    ],
)
def test_a_wrong_shape_is_refused_at_once(stack: Stack, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="(?s)ClusterNetwork: .*" + re.escape(says)):
        ClusterNetwork(stack, "Network", **settings)


def test_the_name_of_a_zone_is_refused_with_its_id() -> None:
    stack = foreign_stack(env=HOME)
    ClusterNetwork(stack, "Network", zone_id="us-east-1a")

    assert "[research/Network]" in refusal(stack) and "zone_id" in refusal(stack)


def test_a_key_of_the_user_lets_flow_logs_use_it(stack: Stack) -> None:
    key: Any = kms.Key(stack, "Key")

    ClusterNetwork(stack, "Network", zone_id="use1-az6", flow_log_key=key)

    assert "CloudWatchLogs" in str(resources(stack, "AWS::KMS::Key"))


def test_a_dual_stack_network_lets_nodes_out_over_ipv6_and_nobody_in(stack: Stack) -> None:
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6", ipv6=True)

    (block,) = resources(stack, "AWS::EC2::VPCCidrBlock")
    subnets = {
        name: one
        for name, one in resources(stack, "AWS::EC2::Subnet").items()
        if "Ipv6CidrBlock" in one["Properties"]
    }
    ((name, nodes),) = subnets.items()
    assert "NodeSubnet" in name and nodes["DependsOn"] == [block]
    assert nodes["Properties"]["AssignIpv6AddressOnCreation"] is True
    assert "Ipv6CidrBlocks" in str(nodes["Properties"]["Ipv6CidrBlock"])
    (gateway,) = resources(stack, "AWS::EC2::EgressOnlyInternetGateway")
    six = [
        one["Properties"]
        for one in resources(stack, "AWS::EC2::Route").values()
        if one["Properties"].get("DestinationIpv6CidrBlock")
    ]
    assert [one["EgressOnlyInternetGatewayId"]["Fn::GetAtt"][0] for one in six] == [gateway]
    assert network.egress and len(network.egress.routes) == 2
    (s3,) = resources(stack, "AWS::EC2::VPCEndpoint").values()
    assert s3["Properties"]["IpAddressType"] == "dualstack", "what its policy refuses passes over IPv6"
    assert refusal(stack) == ""


def test_a_closed_dual_stack_network_has_no_way_out(stack: Stack) -> None:
    ClusterNetwork(stack, "Network", zone_id="use1-az6", egress="closed", ipv6=True)

    assert resources(stack, "AWS::EC2::VPCCidrBlock")
    assert not resources(stack, "AWS::EC2::EgressOnlyInternetGateway")


def test_nodes_outside_of_the_first_block_are_in_one_of_their_own(stack: Stack) -> None:
    """Subnets wait for their block, and what lets the VPC in lets all blocks in."""
    further = {
        "use1-az4": FurtherZone(cidr="10.2.0.0/20"),
        "use1-az5": FurtherZone(cidr="10.1.128.0/20"),
    }
    ClusterNetwork(
        stack, "Network", zone_id="use1-az6", node_cidr="10.1.0.0/17", further_zones=further,
        second_zone_id="use1-az4", egress="closed", removal_policy=RemovalPolicy.RETAIN,
    )  # fmt: skip

    blocks = resources(stack, "AWS::EC2::VPCCidrBlock")
    (vpc,) = resources(stack, "AWS::EC2::VPC")
    named = {one["Properties"]["CidrBlock"]: name for name, one in blocks.items()}
    assert list(named) == ["10.1.0.0/17", "10.2.0.0/20", "10.1.128.0/20"]
    assert {one["Properties"]["VpcId"]["Fn::GetAtt"][0] for one in blocks.values()} == {vpc}
    assert {one["DeletionPolicy"] for one in blocks.values()} == {"Retain"}, "subnets that stay are in them"
    for one in resources(stack, "AWS::EC2::Subnet").values():
        mine = named.get(one["Properties"]["CidrBlock"])
        assert one.get("DependsOn", []) == ([mine] if mine else [])
    (endpoints,) = (
        one["Properties"]["SecurityGroupIngress"]
        for one in resources(stack, "AWS::EC2::SecurityGroup").values()
    )
    assert [one["CidrIp"] for one in endpoints] == ["10.0.0.0/16", *named]
    assert refusal(stack) == ""


def test_the_block_of_a_vpc_that_exists_is_its_owners(stack: Stack) -> None:
    theirs = Network.model_validate(
        {
            "zone_id": "use1-az6",
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"},
            "egress": "closed",
        }
    )
    with pytest.raises(ValueError, match="name a dual-stack subnet"):
        ClusterNetwork(stack, "Network", config=theirs, ipv6=True)


def test_the_way_out_of_a_local_zone_is_in_a_zone_of_the_region(stack: Stack) -> None:
    zones = {"use1-az4": FurtherZone(cidr="10.0.128.0/20")}
    ClusterNetwork(stack, "Network", zone_id="use1-dfw2-az1", further_zones=zones, extra_endpoints=["logs"])

    subnets = resources(stack, "AWS::EC2::Subnet")
    (nat,) = resources(stack, "AWS::EC2::NatGateway").values()
    public = subnets[nat["Properties"]["SubnetId"]["Fn::GetAtt"][0]]
    assert public["Properties"]["AvailabilityZoneId"] == "use1-az4"
    (address,) = resources(stack, "AWS::EC2::EIP").values()
    assert "NetworkBorderGroup" not in address["Properties"]
    interfaces = [
        one["Properties"]["SubnetIds"]
        for one in resources(stack, "AWS::EC2::VPCEndpoint").values()
        if one["Properties"]["VpcEndpointType"] == "Interface"
    ]
    names = {subnet["Fn::GetAtt"][0] for (subnet,) in interfaces}
    assert {subnets[name]["Properties"]["AvailabilityZoneId"] for name in names} == {"use1-az4"}


def test_a_nat_gateway_in_a_local_zone_has_an_address_of_its_border_group(stack: Stack) -> None:
    ClusterNetwork(stack, "Network", zone_id="use1-dfw2-az1")

    (address,) = resources(stack, "AWS::EC2::EIP").values()
    assert address["Properties"]["NetworkBorderGroup"] == "us-east-1-dfw-2"
