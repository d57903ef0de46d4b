"""A subnet in a zone that is known by its id, and its route table: the CDK's own ask for zone names."""

from __future__ import annotations

from ipaddress import IPv4Network

from aws_cdk import Fn, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


def zone_subnet(
    scope: Construct,
    name: str,
    vpc_id: str,
    cidr: IPv4Network,
    zone_id: str,
    *,
    removal_policy: RemovalPolicy | None = None,
    ipv6: ec2.CfnVPCCidrBlock | None = None,
    block: ec2.CfnVPCCidrBlock | None = None,
    vpc: ec2.CfnVPC | None = None,
) -> ec2.CfnSubnet:
    """A private subnet; with `removal_policy` it stays with what stays in it.

    With `ipv6`, the block that `vpc` has of Amazon, it is dual stack, and network interfaces in it get
    addresses of both kinds. `block` is the secondary one that it lies in.
    """
    six = Fn.select(0, Fn.cidr(Fn.select(0, vpc.attr_ipv6_cidr_blocks), 1, "64")) if vpc and ipv6 else None
    subnet = ec2.CfnSubnet(
        scope,
        name,
        vpc_id=vpc_id,
        cidr_block=str(cidr),
        availability_zone_id=zone_id,
        map_public_ip_on_launch=False,
        ipv6_cidr_block=six,
        assign_ipv6_address_on_creation=True if six else None,
    )
    for dependency in filter(None, (ipv6, block)):
        subnet.add_resource_dependency(dependency)
    if removal_policy:
        subnet.apply_removal_policy(removal_policy)
    Tags.of(subnet).add("Name", f"{scope.node.path}/{name}")
    return subnet


def associated_routes(scope: Construct, name: str, vpc_id: str, subnet: ec2.CfnSubnet) -> ec2.CfnRouteTable:
    """A route table of one subnet."""
    table = ec2.CfnRouteTable(scope, name, vpc_id=vpc_id)
    ec2.CfnSubnetRouteTableAssociation(
        scope,
        f"{name}Association",
        route_table_id=table.attr_route_table_id,
        subnet_id=subnet.attr_subnet_id,
    )
    return table
