"""What exists of the network, against what the environment takes it for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.network import ExistingSubnet, ExistingVpc, FurtherZone
from ultracluster.config.storage import (
    FIRST_LUSTRE,
    ExistingDatabase,
    ExistingLustre,
    ExistingOpenZfs,
    RdsMySql,
)
from ultracluster.model.addresses import AddressBudget, address_budget, further_budgets
from ultracluster.model.endpoints import closed_endpoints


def questions(situation: Situation) -> Iterator[Question]:
    network = situation.environment.network
    if vpc := network.vpc:
        yield Question("network", f"VPC {vpc.id}", lambda: _vpc(situation, vpc))
        if vpc.nat_gateway_id:
            yield Question("network", vpc.nat_gateway_id, lambda: _nat(situation, vpc))
        if network.egress == "closed" and not vpc.create_endpoints:
            yield Question("network", "VPC endpoints", lambda: _endpoints(situation, vpc))
    if subnet := network.subnet:
        yield Question(
            "network",
            f"subnet {subnet.id}",
            lambda: _subnet(situation, subnet, network.zone_id, address_budget(situation.cluster)),
        )
    for zone, further in network.further_zones.items():
        if further.subnet_id:
            yield Question(
                "network", f"subnet {further.subnet_id}",
                lambda zone=zone, further=further: _further(situation, zone, further),
            )  # fmt: skip
    if group := network.security_group:
        yield Question("network", f"security group {group.id}", lambda: _node_group(situation, group.id))
    others = _other_groups(situation)
    if others:
        yield Question("network", "security groups", lambda: _groups(situation, others))
    for what, subnets in _other_subnets(situation).items():
        yield Question("network", what, lambda what=what, subnets=subnets: _pairs(situation, what, subnets))


def _vpc(situation: Situation, wanted: ExistingVpc) -> Iterator[Row]:
    what, ec2 = f"VPC {wanted.id}", situation.client("ec2")
    vpc = ec2.describe_vpcs(VpcIds=[wanted.id])["Vpcs"][0]
    networks = [one["CidrBlock"] for one in vpc.get("CidrBlockAssociationSet", [])] or [vpc["CidrBlock"]]
    if not any(IPv4Network(wanted.cidr).subnet_of(IPv4Network(network)) for network in networks):
        yield Row(
            what, "red", f"has {', '.join(networks)}, the file says {wanted.cidr}",
            f"write `cidr: {networks[0]}`",
        )  # fmt: skip
    elif vpc.get("State", "available") != "available":
        yield Row(what, "yellow", f"is {vpc['State']}", "wait until it is available")
    else:
        yield Row(what, "green", f"has {', '.join(networks)}")
    for attribute, key in (
        ("enableDnsSupport", "EnableDnsSupport"),
        ("enableDnsHostnames", "EnableDnsHostnames"),
    ):
        answer = ec2.describe_vpc_attribute(VpcId=wanted.id, Attribute=attribute)
        if not answer[key]["Value"]:
            yield Row(
                f"{what} {attribute}", "red", "is off: file systems and endpoints have no names then",
                f"aws ec2 modify-vpc-attribute --vpc-id {wanted.id} --{_option(attribute)}",
            )  # fmt: skip


def _option(attribute: str) -> str:
    return {"enableDnsSupport": "enable-dns-support", "enableDnsHostnames": "enable-dns-hostnames"}[attribute]


def _nat(situation: Situation, vpc: ExistingVpc) -> Iterator[Row]:
    gateway_id = str(vpc.nat_gateway_id)
    answer = situation.client("ec2").describe_nat_gateways(NatGatewayIds=[gateway_id])
    gateway = answer["NatGateways"][0]
    if gateway.get("State") != "available":
        yield Row(gateway_id, "red", f"is {gateway.get('State')}", "name one that is available")
    elif gateway.get("VpcId") != vpc.id:
        yield Row(gateway_id, "red", f"is in {gateway.get('VpcId')}", f"name one of {vpc.id}")
    else:
        yield Row(gateway_id, "green", "is available")


def _endpoints(situation: Situation, vpc: ExistingVpc) -> Iterator[Row]:
    pages = (
        situation.client("ec2")
        .get_paginator("describe_vpc_endpoints")
        .paginate(Filters=[{"Name": "vpc-id", "Values": [vpc.id]}])
    )
    prefix = f"com.amazonaws.{situation.environment.region}."
    there = {
        row["ServiceName"].removeprefix(prefix)
        for page in pages
        for row in page["VpcEndpoints"]
        if row.get("State", "available").casefold() in ("available", "pending")
    }
    missing = [endpoint for endpoint in closed_endpoints(situation.cluster) if endpoint.service not in there]
    for endpoint in missing:
        yield Row(
            f"endpoint {endpoint.service}", "red", f"{vpc.id} has none: {endpoint.reason}",
            f"make a {endpoint.kind} endpoint for {prefix}{endpoint.service}, "
            "or write `create_endpoints: true`",
        )  # fmt: skip
    if not missing:
        yield Row("VPC endpoints", "green", "all that a closed network needs are there")


def _further(situation: Situation, zone: str, wanted: FurtherZone) -> Iterator[Row]:
    subnet = ExistingSubnet(id=str(wanted.subnet_id), cidr=wanted.cidr)
    yield from _subnet(situation, subnet, zone, further_budgets(situation.cluster)[zone])


def _subnet(
    situation: Situation, wanted: ExistingSubnet, zone_id: str, budget: AddressBudget
) -> Iterator[Row]:
    environment = situation.environment
    what = f"subnet {wanted.id}"
    subnet = situation.client("ec2").describe_subnets(SubnetIds=[wanted.id])["Subnets"][0]
    zone, cidr = subnet.get("AvailabilityZoneId", ""), subnet["CidrBlock"]
    problems = [
        (zone != zone_id, f"is in {zone}, not in {zone_id}", f"write `zone_id: {zone}`, or name another"),
        (
            environment.network.vpc is not None and subnet["VpcId"] != environment.network.vpc.id,
            f"is in {subnet['VpcId']}",
            "name a subnet of network.vpc",
        ),
        (
            environment.dual_stack and not subnet.get("Ipv6CidrBlockAssociationSet"),
            "has no IPv6 block",
            "give it one, or write `network_type: ipv4`: all subnets of an IPv6 cluster of PCS have one",
        ),
        (
            environment.dual_stack and not subnet.get("AssignIpv6AddressOnCreation"),
            "assigns no IPv6 addresses",
            f"aws ec2 modify-subnet-attribute --subnet-id {wanted.id} --assign-ipv6-address-on-creation",
        ),
        (subnet["CidrBlock"] != wanted.cidr, f"has {cidr}", f"write `cidr: {cidr}`"),
        (
            bool(subnet.get("MapPublicIpOnLaunch")),
            "gives public addresses",
            "nodes belong into a private subnet: nodes with several network cards get no public address",
        ),
    ]  # fmt: skip
    for wrong, found, do in problems:
        if wrong:
            yield Row(what, "red", found, do)
    if not any(wrong for wrong, _, _ in problems):
        yield Row(what, "green", f"{cidr} in {zone}")
    free = subnet["AvailableIpAddressCount"]
    text = f"{free} free, {budget.total} needed ({budget.certain} certainly)"
    if free >= budget.total:
        yield Row(f"{what} addresses", "green", text)
    else:
        yield Row(
            f"{what} addresses", "red" if free < budget.certain else "yellow", text,
            "name a larger subnet, its CIDR cannot change later; right if this environment has taken them",
        )  # fmt: skip


def _node_group(situation: Situation, group_id: str) -> Iterator[Row]:
    """EFA requires all traffic in from, and out to, the group itself (EC2 User Guide)."""
    what = f"security group {group_id}"
    group = situation.client("ec2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
    vpc = situation.environment.network.vpc
    if vpc and group.get("VpcId") != vpc.id:
        yield Row(what, "red", f"is in {group.get('VpcId')}", f"name a group of {vpc.id}")
    for direction, rules in (
        ("ingress", group.get("IpPermissions", [])),
        ("egress", group.get("IpPermissionsEgress", [])),
    ):
        if _to_itself(rules, group_id):
            yield Row(f"{what} self {direction}", "green", "all traffic with itself")
        else:
            yield Row(
                f"{what} self {direction}", "red", "no rule for all traffic with itself: EFA falls silent",
                f"aws ec2 authorize-security-group-{direction} --group-id {group_id} --ip-permissions "
                f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={group_id}}}]'",
            )  # fmt: skip


def _to_itself(rules: Sequence[Mapping[str, Any]], group_id: str) -> bool:
    return any(
        rule.get("IpProtocol") == "-1"
        and any(pair.get("GroupId") == group_id for pair in rule.get("UserIdGroupPairs", []))
        for rule in rules
    )


def _other_groups(situation: Situation) -> dict[str, str]:
    """Security groups of file systems and database that exist, by what they are of."""
    storage = situation.environment.storage
    parts: dict[str, object] = {"OpenZFS": storage.openzfs, "accounting": storage.accounting_database}
    for name, one in situation.environment.lustres.items():
        parts["Lustre" if name == FIRST_LUSTRE else f"Lustre {name}"] = one.settings
    existing = (ExistingLustre, ExistingOpenZfs, ExistingDatabase)
    return {name: part.security_group_id for name, part in parts.items() if isinstance(part, existing)}


def _groups(situation: Situation, wanted: Mapping[str, str]) -> Iterator[Row]:
    ids = sorted(set(wanted.values()))
    filters = [{"Name": "group-id", "Values": ids}]  # names that are missing are then only missing
    answer = situation.client("ec2").describe_security_groups(Filters=filters)
    there = {group["GroupId"]: group for group in answer["SecurityGroups"]}
    for name, group_id in wanted.items():
        group = there.get(group_id)
        what = f"security group of {name}"
        if group is None:
            yield Row(what, "red", f"there is no {group_id}", "name the group of what exists")
        else:
            yield Row(what, "green", f"{group_id} in {group.get('VpcId')}")


def _other_subnets(situation: Situation) -> dict[str, tuple[str, ...]]:
    database, plane = situation.environment.storage.accounting_database, situation.cluster.kubernetes
    found = {
        "subnets of the database": database.subnet_ids if isinstance(database, RdsMySql) else (),
        "subnets of the control plane": plane.control_plane_subnet_ids if plane else (),
    }
    return {what: tuple(ids) for what, ids in found.items() if ids}


def _pairs(situation: Situation, what: str, ids: Sequence[str]) -> Iterator[Row]:
    answer = situation.client("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": list(ids)}])
    there = {subnet["SubnetId"]: subnet for subnet in answer["Subnets"]}
    vpc = situation.environment.network.vpc
    missing = [identifier for identifier in ids if identifier not in there]
    foreign = [one for one in there.values() if vpc and one["VpcId"] != vpc.id]
    zones = {subnet["AvailabilityZoneId"] for subnet in there.values()}
    if missing:
        yield Row(what, "red", f"there is no {', '.join(missing)}", "name subnets that exist")
    elif foreign:
        yield Row(
            what, "red", f"{foreign[0]['SubnetId']} is in {foreign[0]['VpcId']}", "name subnets of the VPC"
        )
    elif len(zones) < 2:
        yield Row(what, "red", f"are all in {', '.join(zones)}", "name subnets in two zones")
    else:
        yield Row(what, "green", f"in {', '.join(sorted(zones))}")
