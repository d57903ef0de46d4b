"""VPC and subnet by id, without a look-up."""

from __future__ import annotations

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge


def existing_subnet(
    scope: Construct,
    construct_id: str,
    subnet_id: str,
    *,
    route_table_id: str | None = None,
    availability_zone: str | None = None,
) -> ec2.ISubnet:
    """A subnet made elsewhere, or with an L1 construct.

    Args:
        availability_zone: its name; by default any: the person who wrote the subnet down knows it by id.
    """
    subnet = ec2.Subnet.from_subnet_attributes(
        scope,
        construct_id,
        subnet_id=subnet_id,
        availability_zone=availability_zone or _any_zone(),
        route_table_id=route_table_id,
    )
    if route_table_id is None:
        acknowledge(subnet, {NO_ROUTE_TABLE: UNREAD})
    return subnet


def existing_vpc(
    scope: Construct, construct_id: str, vpc_id: str, *, cidr: str, subnet_id: str | None = None
) -> ec2.IVpc:
    """A VPC made elsewhere, or with L1 constructs."""
    vpc = ec2.Vpc.from_vpc_attributes(
        scope,
        construct_id,
        vpc_id=vpc_id,
        vpc_cidr_block=cidr,
        availability_zones=[_any_zone()],
        private_subnet_ids=[subnet_id] if subnet_id else None,
    )
    if subnet_id:
        acknowledge(vpc, {NO_ROUTE_TABLE: UNREAD})
    return vpc


def cidr_of(vpc: ec2.IVpc, asks: Construct) -> str:
    """The CIDR block of a VPC.

    Args:
        vpc: made here, or imported.
        asks: what needs it.

    Raises:
        ValueError: it was imported without its block.
    """
    try:
        return vpc.vpc_cidr_block
    except RuntimeError:
        raise ValueError(
            f"{type(asks).__name__} {asks.node.path}: the VPC was imported without its CIDR block, which is "
            'needed here: Vpc.from_vpc_attributes(..., vpc_cidr_block="10.0.0.0/16"), or Vpc.from_lookup'
        ) from None


UNREAD = "Nothing asks for the routes of a subnet that another stack made."
NO_ROUTE_TABLE = "@aws-cdk/aws-ec2:noSubnetRouteTableId"


def _any_zone() -> str:
    """A zone name, which the CDK's interfaces require; nothing is placed by it, and nothing is looked up."""
    return Fn.select(0, Fn.get_azs())
