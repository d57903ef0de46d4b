"""Subnets, and where their route tables lead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from iam_proof.resolved import Resolved

EVERYWHERE = "0.0.0.0/0"


@dataclass
class Table:
    """A route table."""

    name: str
    out: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """(destination, id of the target, resource) of each route that leads out of the VPC."""
    gateways: set[str] = field(default_factory=set[str])
    """`gateway:s3` for each gateway endpoint that writes its route here."""


@dataclass
class Subnet:
    """A subnet; without a table of its own it has the VPC's main one, which leads into the VPC only."""

    name: str
    cidr: str
    vpc: str
    public_addresses: bool
    table: Table | None = None


class Routes:
    """What a VPC's route tables say."""

    def __init__(self, made: Resolved) -> None:
        self.tables: dict[str, Table] = {}
        self.subnets: dict[str, Subnet] = {}
        self.vpcs: dict[str, str] = {}
        """Network by id."""
        self._nats: dict[str, str] = {}
        self._attached: set[tuple[str, str]] = set()
        for stack, logical, _ in made.resources("AWS::EC2::VPC"):
            self.vpcs[made.ref(stack, logical)] = made.properties(stack, logical)["CidrBlock"]
        for stack, logical, _ in made.resources("AWS::EC2::RouteTable"):
            self.tables[made.ref(stack, logical)] = Table(f"{stack}/{logical}")
        for stack, logical, _ in made.resources("AWS::EC2::Subnet"):
            told = made.properties(stack, logical)
            self.subnets[made.ref(stack, logical)] = Subnet(
                f"{stack}/{logical}", told["CidrBlock"], told["VpcId"], told.get("MapPublicIpOnLaunch", False)
            )
        for stack, logical, _ in made.resources("AWS::EC2::SubnetRouteTableAssociation"):
            told = made.properties(stack, logical)
            self.subnets[told["SubnetId"]].table = self.tables[told["RouteTableId"]]
        for stack, logical, _ in made.resources("AWS::EC2::NatGateway"):
            self._nats[made.ref(stack, logical)] = made.properties(stack, logical)["SubnetId"]
        for stack, logical, _ in made.resources("AWS::EC2::VPCGatewayAttachment"):
            told = made.properties(stack, logical)
            self._attached.add((told["VpcId"], told["InternetGatewayId"]))
        for stack, logical, _ in made.resources("AWS::EC2::Route"):
            told = made.properties(stack, logical)
            to = told.get("DestinationCidrBlock") or told.get("DestinationIpv6CidrBlock", "?")
            target = next(
                (str(told[key]) for key in told if key.endswith(("GatewayId", "ConnectionId"))), "?"
            )
            self.tables[told["RouteTableId"]].out.append((to, target, f"{stack}/{logical}"))
        for stack, logical, _ in made.resources("AWS::EC2::VPCEndpoint"):
            told = made.properties(stack, logical)
            for table in told.get("RouteTableIds", []):
                self.tables[table].gateways.add(f"gateway:{told['ServiceName'].split('.', 3)[3]}")

    def missing(self, subnet_id: str, target: str) -> str | None:
        """Why a subnet has no way to `internet`, or to a service's gateway; None if it has one."""
        subnet = self.subnets[subnet_id]
        if subnet.table is None:
            return f"subnet {subnet.name} has no route table of its own, so no way to {target}"
        if target in subnet.table.gateways:
            return None
        leads = [one for to, one, _ in subnet.table.out if to == EVERYWHERE]
        if not leads:
            what = f"{EVERYWHERE}" if target == "internet" else f"{EVERYWHERE}, and no {target}"
            return f"route table {subnet.table.name} has no route to {what}"
        if leads[0] not in self._nats:
            return (
                f"route table {subnet.table.name} sends {EVERYWHERE} to {leads[0]}, which is no NAT gateway"
            )
        public = self.subnets[self._nats[leads[0]]]
        onward = [one for to, one, _ in public.table.out if to == EVERYWHERE] if public.table else []
        if not any((public.vpc, one) in self._attached for one in onward):
            return f"subnet {public.name} of the NAT gateway has no route to an internet gateway of its VPC"
        return None

    def faults(self, used: set[str]) -> Iterator[str]:
        """What is wrong whoever sends: subnets of ours that the internet could reach, routes elsewhere.

        Args:
            used: subnets in which something stands.
        """
        for subnet_id in sorted(used):
            subnet = self.subnets[subnet_id]
            if subnet.public_addresses:
                yield f"subnet {subnet.name} gives public addresses"
            for to, target, resource in subnet.table.out if subnet.table else ():
                if target not in self._nats or to != EVERYWHERE:
                    where = f"route {resource} of subnet {subnet.name}"
                    yield f"{where} leads {to} to {target}, which is no NAT gateway"
