"""Subnets, and where their route tables lead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from iam_proof.resolved import Resolved

from reachability.reading import noted

Told = Mapping[str, Any]
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

    def __init__(self, made: Resolved, unjudged: list[str]) -> None:
        self.tables: dict[str, Table] = {}
        self.subnets: dict[str, Subnet] = {}
        self.vpcs: dict[str, str] = {}
        """Network by id."""
        self.attached: dict[str, str] = {}
        """The VPC of each internet gateway."""
        self._nats: dict[str, str] = {}
        for kind, read in (
            ("VPC", self._vpc),
            ("RouteTable", self._table),
            ("Subnet", self._subnet),
            ("SubnetRouteTableAssociation", self._association),
            ("NatGateway", self._nat),
            ("VPCGatewayAttachment", self._attachment),
            ("Route", self._route),
            ("VPCEndpoint", self._endpoint),
        ):
            for stack, logical, _ in made.resources(f"AWS::EC2::{kind}"):
                with noted(unjudged, f"{stack}/{logical}"):
                    read(made.ref(stack, logical), f"{stack}/{logical}", made.properties(stack, logical))

    def _vpc(self, name: str, _: str, told: Told) -> None:
        self.vpcs[name] = str(ip_network(told["CidrBlock"]))

    def _table(self, name: str, resource: str, _: Told) -> None:
        self.tables[name] = Table(resource)

    def _subnet(self, name: str, resource: str, told: Told) -> None:
        public = told.get("MapPublicIpOnLaunch", False)
        self.subnets[name] = Subnet(resource, str(ip_network(told["CidrBlock"])), told["VpcId"], public)

    def _association(self, _: str, __: str, told: Told) -> None:
        self.subnets[told["SubnetId"]].table = self.tables[told["RouteTableId"]]

    def _nat(self, name: str, _: str, told: Told) -> None:
        self._nats[name] = told["SubnetId"]

    def _attachment(self, _: str, __: str, told: Told) -> None:
        # a VPN gateway has another property, and whom it reaches is not in a template
        self.attached[told["InternetGatewayId"]] = told["VpcId"]

    def _route(self, _: str, resource: str, told: Told) -> None:
        to = next(str(told[key]) for key in told if key.startswith("Destination"))
        target = next(str(told[key]) for key in told if not key.startswith(("Destination", "RouteTable")))
        self.tables[told["RouteTableId"]].out.append((to, target, resource))

    def _endpoint(self, _: str, __: str, told: Told) -> None:
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
        if (public := self.subnets.get(self._nats[leads[0]])) is None:
            return f"NAT gateway {leads[0]} is in subnet {self._nats[leads[0]]}, which no template makes"
        onward = [one for to, one, _ in public.table.out if to == EVERYWHERE] if public.table else []
        if not any(self.attached.get(one) == public.vpc for one in onward):
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
        # what a NAT gateway gets, its subnet's routes take further: to a peer, into the company's network
        for table in self.tables.values():
            subnets = {name for name, one in self.subnets.items() if one.table is table}
            if subnets & used:
                continue
            for to, target, resource in table.out:
                public = subnets and subnets <= set(self._nats.values())
                if not (public and to == EVERYWHERE and target in self.attached):
                    where = f"route {resource} of route table {table.name}"
                    yield f"{where} leads {to} to {target}, which is no internet gateway of a NAT gateway"
