"""What is around a cluster: subnets, file systems, databases, images and reservations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, code
from ultracluster.imports.running.asking import PCLUSTER_NAME
from ultracluster.imports.running.documents import Notes, below
from ultracluster.imports.surroundings import FileSystem, Reserved, Subnet, Surroundings

_SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}")
_IMAGE = re.compile(r"ami-[0-9a-f]{8,17}")
_DATABASE = re.compile(r"[a-z0-9.-]+\.rds\.[a-z0-9.-]+")
_KINDS = {"LUSTRE": "lustre", "OPENZFS": "openzfs"}


def around(account: Account, document: Mapping[str, Any], cluster: str, notes: Notes) -> Surroundings:
    """Return the state in the account of everything that a cluster names.

    Args:
        document: all that is known of the cluster so far; ids are found wherever they stand in it.
        cluster: its name, which file systems that ParallelCluster made have in a tag.
    """
    texts = set(_texts(document))
    subnets = notes.attempt("subnets", lambda: _subnets(account, _named(texts, _SUBNET)), {})
    vpcs = {subnet.vpc for subnet in subnets.values()}
    systems = notes.attempt("file systems", lambda: _file_systems(account, vpcs, cluster, notes), {})
    images = notes.attempt("images", lambda: _own_images(account, _named(texts, _IMAGE)), frozenset())
    databases: dict[str, str] = {}
    if wanted := {text for text in texts if _DATABASE.fullmatch(text)}:
        databases = notes.attempt("databases", lambda: _databases(account, wanted), {})
    reservations = notes.attempt("reservations", lambda: _reservations(account), ())
    return Surroundings(
        account=account.identity().account,
        region=account.region,
        subnets=subnets,
        file_systems=systems,
        databases=databases,
        own_images=images,
        reservations=reservations,
        unread=notes.unread,
    )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[object, object]", value).values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _texts(one)


def _named(texts: Iterable[str], form: re.Pattern[str]) -> list[str]:
    return sorted({text for text in texts if form.fullmatch(text)})


def _subnets(account: Account, names: list[str]) -> dict[str, Subnet]:
    """Those named, and all others of their VPCs."""
    if not names:
        return {}
    ec2 = account.client("ec2")
    pages = ec2.get_paginator("describe_subnets")
    # a filter leaves out what is gone, and an id would refuse all
    asked = [{"Name": "subnet-id", "Values": names}]
    vpcs = sorted({subnet["VpcId"] for page in pages.paginate(Filters=asked) for subnet in page["Subnets"]})
    if not vpcs:
        return {}
    networks: dict[str, list[str]] = {}
    for vpc in ec2.describe_vpcs(VpcIds=vpcs)["Vpcs"]:
        blocks = [block["CidrBlock"] for block in vpc.get("CidrBlockAssociationSet", [])]
        networks[vpc["VpcId"]] = blocks or [vpc["CidrBlock"]]
    subnets: dict[str, Subnet] = {}
    for page in pages.paginate(Filters=[{"Name": "vpc-id", "Values": vpcs}]):
        for subnet in page["Subnets"]:
            if not subnet.get("CidrBlock") or not subnet.get("AvailabilityZoneId"):
                continue  # of IPv6 only, in which no node of ours can be
            own = IPv4Network(subnet["CidrBlock"])
            blocks = networks.get(subnet["VpcId"]) or [subnet["CidrBlock"]]
            subnets[subnet["SubnetId"]] = Subnet(
                id=subnet["SubnetId"],
                cidr=subnet["CidrBlock"],
                zone_id=subnet["AvailabilityZoneId"],
                vpc=subnet["VpcId"],
                vpc_cidr=next((block for block in blocks if own.subnet_of(IPv4Network(block))), blocks[0]),
                public=bool(subnet.get("MapPublicIpOnLaunch")),
            )
    return subnets


def _file_systems(account: Account, vpcs: set[str], cluster: str, notes: Notes) -> dict[str, FileSystem]:
    """Those in the VPCs of the nodes."""
    systems: dict[str, FileSystem] = {}
    if not vpcs:
        return systems
    for page in account.client("fsx").get_paginator("describe_file_systems").paginate():
        for system in page["FileSystems"]:
            if system.get("VpcId") not in vpcs:
                continue
            tags = {tag["Key"]: tag.get("Value", "") for tag in system.get("Tags", [])}
            interfaces: list[str] = system.get("NetworkInterfaceIds") or []
            group = notes.attempt(
                "network interfaces", lambda names=interfaces: _group_of(account, names), ""
            )
            lustre = below(system, "LustreConfiguration")
            systems[system["FileSystemId"]] = FileSystem(
                id=system["FileSystemId"],
                kind=cast("Any", _KINDS.get(system.get("FileSystemType", ""), "other")),
                dns_name=system.get("DNSName", ""),
                mount_name=lustre.get("MountName", ""),
                volume=below(system, "OpenZFSConfiguration").get("RootVolumeId", ""),
                security_group=group,
                efa=bool(lustre.get("EfaEnabled")),
                state=system.get("Lifecycle", "AVAILABLE"),
                made_as=tags.get("Name", "") if tags.get(PCLUSTER_NAME) == cluster else "",
            )
    return systems


def _group_of(account: Account, interfaces: list[str]) -> str:
    """The first security group of a file system's network interfaces."""
    if not interfaces:
        return ""
    answer = account.client("ec2").describe_network_interfaces(NetworkInterfaceIds=interfaces[:1])
    groups = [
        group["GroupId"] for interface in answer["NetworkInterfaces"] for group in interface.get("Groups", [])
    ]
    return groups[0] if groups else ""


def _own_images(account: Account, names: list[str]) -> frozenset[str]:
    """Images that this account owns: HyperPod and EKS name their own ones, too."""
    if not names:
        return frozenset()
    asked = [{"Name": "image-id", "Values": names}]
    answer = account.client("ec2").describe_images(Owners=["self"], Filters=asked)
    return frozenset(image["ImageId"] for image in answer["Images"])


def _databases(account: Account, wanted: set[str]) -> dict[str, str]:
    """Endpoint -> the first security group, of the databases that the cluster names."""
    found: dict[str, str] = {}
    for page in account.client("rds").get_paginator("describe_db_instances").paginate():
        for database in page["DBInstances"]:
            endpoint = below(database, "Endpoint").get("Address", "")
            groups = [group["VpcSecurityGroupId"] for group in database.get("VpcSecurityGroups", [])]
            if endpoint in wanted and groups:
                found[endpoint] = groups[0]
    return found


def _reservations(account: Account) -> tuple[Reserved, ...]:
    """Reservations and blocks of the account that are there, or will be."""
    asked = [{"Name": "state", "Values": ["active", "scheduled"]}]
    try:
        pages = account.client("ec2").get_paginator("describe_capacity_reservations")
        found = [
            reservation
            for page in pages.paginate(Filters=asked)
            for reservation in page["CapacityReservations"]
        ]
    except AWS_ERRORS as error:
        if code(error) != "InvalidParameterValue":
            raise
        found = []
    return tuple(
        Reserved(
            id=one["CapacityReservationId"],
            instance_type=one["InstanceType"],
            zone_id=one.get("AvailabilityZoneId", ""),
            count=int(one.get("TotalInstanceCount", 0)),
            block=one.get("ReservationType") == "capacity-block",
            open=one.get("InstanceMatchCriteria") == "open",
        )
        for one in found
    )
