"""An account as AWS would describe it: what an environment's cluster asks about, in the API's own form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2

from tools.catalog_from_authorities import api
from ultracluster.catalog import InstanceType, instance_type
from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.network.admission import ALL_TRAFFIC, NFS, Admission, isolated_group
from ultracluster.network.admission import LUSTRE as LUSTRE_PORTS
from ultracluster.network.efa_security_group import EfaSecurityGroup

Facts = dict[str, dict[str, Any]]

ACCOUNT = "111122223333"
VPC = "vpc-0aaaaaaaaaaaaaaa1"
SUBNET = "subnet-0aaaaaaaaaaaaaaa1"
OTHER_SUBNET = "subnet-0aaaaaaaaaaaaaaa2"
"""In another zone."""
NODES = "sg-0aaaaaaaaaaaaaaa1"
LUSTRE_GROUP = "sg-0aaaaaaaaaaaaaaa2"
OPENZFS_GROUP = "sg-0aaaaaaaaaaaaaaa3"
PLAIN_GROUP = "sg-0aaaaaaaaaaaaaaa4"
"""Lets everything in and out, but not by rules that name itself: what `allow_all_outbound` makes."""
LUSTRE = "fs-0aaaaaaaaaaaaaaa1"
OPENZFS = "fs-0aaaaaaaaaaaaaaa2"
OPENZFS_VOLUME = "fsvol-0aaaaaaaaaaaaaaa2"
BUCKET = "example-scripts"
CIDR = "10.0.0.0/17"

PLATFORM = {"rhel8": "Red Hat Enterprise Linux", "rhel9": "Red Hat Enterprise Linux"}
OFFICIAL = {
    "alinux2023": "amzn2023-hvm",
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
    "rhel8": "rhel8-hvm",
    "rhel9": "rhel9-hvm",
}
"""Systems of ParallelCluster's own images, and how they are called in the names of these."""


def describe_type(name: str) -> dict[str, Any]:
    """DescribeInstanceTypes: EC2's own answer where there is one, else what the catalogue knows."""
    if name in api():
        return api()[name]
    known = instance_type(name)
    assert known, f"{name} is in neither EC2's answers nor the catalogue"
    return _type_of(known)


def _type_of(known: InstanceType) -> dict[str, Any]:
    assert known.accelerator
    threads = max(known.threads_per_core, default=1)
    efas = known.efa_interfaces or len(known.efa_cards)
    return {
        "InstanceType": known.name,
        "SupportedUsageClasses": ["capacity-block"] if known.ultraserver else ["on-demand", "spot"],
        "BareMetal": False,
        "ProcessorInfo": {"SupportedArchitectures": [known.architecture]},
        "VCpuInfo": {
            "DefaultVCpus": known.vcpu,
            "DefaultCores": known.vcpu // threads,
            "DefaultThreadsPerCore": threads,
        },
        "MemoryInfo": {"SizeInMiB": int(known.memory_gib * 1024)},
        "InstanceStorageSupported": known.local_nvme_disks > 0,
        "EbsInfo": {"EbsOptimizedSupport": "default"},
        "NetworkInfo": {
            "MaximumNetworkCards": known.network_cards,
            "NetworkCards": [
                {"NetworkCardIndex": card, "MaximumNetworkInterfaces": 2}
                for card in range(known.network_cards)
            ],
            "EfaSupported": efas > 0,
            "EfaInfo": {"MaximumEfaInterfaces": efas},
        },
        "GpuInfo": {
            "Gpus": [
                {
                    "Name": known.accelerator.name,
                    "Manufacturer": known.accelerator.manufacturer,
                    "Count": known.accelerator.count,
                }
            ]
        },
        "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "partition", "spread"]},
    }


def official_images(version: str) -> Iterator[dict[str, Any]]:
    """ParallelCluster's own images."""
    number = 0
    for system, part in OFFICIAL.items():
        for architecture in ("x86_64", "arm64"):
            number += 1
            yield {
                **_image(f"ami-0ffffffffffffff{number:02x}", architecture),
                "Name": f"aws-parallelcluster-{version}-{part}-{architecture}-202609080000",
                "Description": f"AWS ParallelCluster AMI for {system}, kernel-6.8",
                "ImageOwnerAlias": "amazon",
            }


def custom_image(image: str, *, system: str, architecture: str, version: str) -> dict[str, Any]:
    """An image of the user's, as `pcluster build-image` makes and tags it."""
    tags = {
        "parallelcluster:version": version,
        "parallelcluster:os": system,
        "parallelcluster:build_status": "available",
    }
    return {
        **_image(image, architecture),
        "Name": f"training-{system}",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def _image(image: str, architecture: str) -> dict[str, Any]:
    return {
        "ImageId": image,
        "Architecture": architecture,
        "State": "available",
        "CreationDate": "2026-09-08T00:00:00.000Z",
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}],
    }


def zone_name(zone_id: str, region: str) -> str:
    """The zone's name in this account: where ids say az1, it says a; Local Zones keep their city."""
    city = zone_id.split("-")[1] if zone_id.count("-") > 1 else ""
    return f"{region}-{city[:3]}-{city[3:]}a" if city else f"{region}{'abcdefghi'[int(zone_id[-1]) - 1]}"


def reservation(
    number: str, *, kind: str, count: int, region: str, zone_id: str, block: bool = False, **more: Any
) -> dict[str, Any]:
    """An On-Demand Capacity Reservation or a Capacity Block."""
    return {
        "CapacityReservationId": number,
        "CapacityReservationArn": f"arn:aws:ec2:{region}:{ACCOUNT}:capacity-reservation/{number}",
        "OwnerId": ACCOUNT,
        "InstanceType": kind,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": zone_name(zone_id, region),
        "AvailabilityZoneId": zone_id,
        "Tenancy": "default",
        "State": "active",
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "capacity-block" if block else "default",
        **more,
    }


def block_status(number: str, *, total: int, unavailable: int = 0) -> dict[str, Any]:
    """The health of a Capacity Block of UltraServers."""
    return {
        "CapacityBlockId": number,
        "InterconnectStatus": "ok",
        "TotalCapacity": total,
        "TotalAvailableCapacity": total - unavailable,
        "TotalUnavailableCapacity": unavailable,
        "CapacityReservationStatuses": [
            {
                "CapacityReservationId": number,
                "TotalCapacity": total,
                "TotalAvailableCapacity": total - unavailable,
                "TotalUnavailableCapacity": unavailable,
            }
        ],
    }


@cache
def security_groups(*, efa: bool) -> dict[str, Any]:
    """Groups of nodes and file systems with the rules that our constructs give them.

    Args:
        efa: the Lustre file system is reached over EFA.
    """
    app = App(analytics_reporting=False)
    stack = Stack(app, "Groups")
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id=VPC, availability_zones=["a"])
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=vpc).security_group
    lustre, zfs = (
        ec2.SecurityGroup.from_security_group_id(
            stack,
            f"{name}Group",
            isolated_group(stack, name, vpc_id=VPC, description=name).attr_group_id,
        )
        for name in ("Lustre", "OpenZfs")
    )
    traffic = ALL_TRAFFIC if efa else LUSTRE_PORTS
    Admission(stack, "ToLustre", clients=nodes, servers=lustre, traffic=traffic, mutual=True)
    Admission(stack, "ToOpenZfs", clients=nodes, servers=zfs, traffic=NFS)
    resources = app.synth().get_stack_by_name("Groups").template["Resources"]
    ids = {"Nodes": NODES, "Lustre": LUSTRE_GROUP, "OpenZfs": OPENZFS_GROUP}
    groups = _groups(resources, ids)
    anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    groups[PLAIN_GROUP] = {
        "GroupId": PLAIN_GROUP,
        "VpcId": VPC,
        "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": PLAIN_GROUP}]}],
        "IpPermissionsEgress": [anywhere],
    }
    return groups


def _groups(resources: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """DescribeSecurityGroups for the groups and rules of a template."""
    groups: dict[str, Any] = {}
    by_logical_id: dict[str, str] = {}
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::EC2::SecurityGroup":
            name = next(name for name in sorted(ids, key=len, reverse=True) if logical_id.startswith(name))
            by_logical_id[logical_id] = ids[name]
            groups[ids[name]] = {
                "GroupId": ids[name],
                "VpcId": VPC,
                "IpPermissions": [],
                "IpPermissionsEgress": [
                    _permission(rule, by_logical_id)
                    for rule in resource["Properties"].get("SecurityGroupEgress", [])
                ],
            }
    keys = {"Ingress": "IpPermissions", "Egress": "IpPermissionsEgress"}
    for resource in resources.values():
        direction = resource["Type"].removeprefix("AWS::EC2::SecurityGroup")
        if direction in keys:
            rule = resource["Properties"]
            owner = groups[by_logical_id[rule["GroupId"]["Fn::GetAtt"][0]]]
            owner[keys[direction]].append(_permission(rule, by_logical_id))
    return groups


def _permission(rule: dict[str, Any], by_logical_id: dict[str, str]) -> dict[str, Any]:
    permission = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
    if "CidrIp" in rule:
        permission["IpRanges"] = [{"CidrIp": rule["CidrIp"]}]
    other = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    if other:
        permission["UserIdGroupPairs"] = [{"GroupId": by_logical_id[other["Fn::GetAtt"][0]]}]
    return permission


def account(
    *,
    region: str,
    zone_id: str,
    types: Iterable[str],
    version: str = "3.16.1",
    efa_storage: bool = False,
) -> Facts:
    """A network with both file systems, the official images and the types; nothing is reserved."""
    zone = zone_name(zone_id, region)
    groups = security_groups(efa=efa_storage)
    return {
        "instance_types": {name: describe_type(name) for name in types},
        "vpcs": {VPC: {"enableDnsSupport": True, "enableDnsHostnames": True}},
        "subnets": {
            SUBNET: _subnet(SUBNET, zone, zone_id, CIDR),
            OTHER_SUBNET: _subnet(OTHER_SUBNET, f"{region}i", "other-az9", "10.0.128.0/18"),
        },
        "security_groups": dict(groups),
        "images": {image["ImageId"]: image for image in official_images(version)},
        "file_systems": {
            LUSTRE: _file_system(
                LUSTRE,
                "LUSTRE",
                "eni-0aaaaaaaaaaaaaaa1",
                region,
                LustreConfiguration={"MountName": "abcdefgh"},
            ),
            OPENZFS: _file_system(
                OPENZFS,
                "OPENZFS",
                "eni-0aaaaaaaaaaaaaaa2",
                region,
                OpenZFSConfiguration={"RootVolumeId": OPENZFS_VOLUME},
            ),
        },
        "volumes": {
            OPENZFS_VOLUME: {
                "VolumeId": OPENZFS_VOLUME,
                "FileSystemId": OPENZFS,
                "VolumeType": "OPENZFS",
                "OpenZFSConfiguration": {"VolumePath": "/fsx"},
            }
        },
        "interfaces": {
            "eni-0aaaaaaaaaaaaaaa1": _interface("eni-0aaaaaaaaaaaaaaa1", LUSTRE_GROUP, zone),
            "eni-0aaaaaaaaaaaaaaa2": _interface("eni-0aaaaaaaaaaaaaaa2", OPENZFS_GROUP, zone),
        },
        "buckets": {BUCKET: {}},
        "reservations": {},
        "blocks": {},
        "placement_groups": {},
        "resource_groups": {},
        "secrets": {},
        "policies": {},
        "objects": {},
    }


def _subnet(number: str, zone: str, zone_id: str, cidr: str) -> dict[str, Any]:
    return {
        "SubnetId": number,
        "VpcId": VPC,
        "AvailabilityZone": zone,
        "AvailabilityZoneId": zone_id,
        "CidrBlock": cidr,
        "AvailableIpAddressCount": 32_000,
        "MapPublicIpOnLaunch": False,
    }


def _file_system(number: str, kind: str, interface: str, region: str, **more: Any) -> dict[str, Any]:
    return {
        "FileSystemId": number,
        "FileSystemType": kind,
        "VpcId": VPC,
        "SubnetIds": [SUBNET],
        "NetworkInterfaceIds": [interface],
        "DNSName": f"{number}.fsx.{region}.amazonaws.com",
        **more,
    }


def _interface(number: str, group: str, zone: str) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": number,
        "VpcId": VPC,
        "SubnetId": SUBNET,
        "AvailabilityZone": zone,
        "Groups": [{"GroupId": group}],
    }


def reserve(facts: Facts, environment: Environment) -> None:
    """Add what the environment's groups say they have reserved: as many as they ask for, where they are."""
    region, zone_id = environment.region, environment.network.zone_id
    counts: dict[str, int] = {}
    for group in environment.node_groups.values():
        capacity = group.capacity
        number = getattr(capacity, "id", None)
        if isinstance(capacity, Reservation) and capacity.placement_group:
            name = capacity.placement_group
            facts["placement_groups"][name] = {"GroupName": name, "Strategy": "cluster", "State": "available"}
        if isinstance(capacity, Reservation) and capacity.resource_group_arn:
            number = f"cr-0bbbbbbbbbbbb{len(facts['resource_groups']):04x}"
            arn = f"arn:aws:ec2:{region}:{ACCOUNT}:capacity-reservation/{number}"
            facts["resource_groups"][capacity.resource_group_arn] = {
                "Configuration": [{"Type": "AWS::EC2::CapacityReservationPool"}],
                "Resources": [
                    {"Identifier": {"ResourceArn": arn, "ResourceType": "AWS::EC2::CapacityReservation"}}
                ],
            }
        if number is None:
            continue
        block = isinstance(capacity, CapacityBlock)
        counts[number] = counts.get(number, 0) + group.max_nodes
        known = instance_type(group.instance_type)
        count = counts[number]
        if known and known.ultraserver:
            count = next((size for size in (9, 18) if size >= count), count)
            facts["blocks"][number] = block_status(number, total=count)
        facts["reservations"][number] = reservation(
            number,
            kind=group.instance_type,
            count=count,
            region=region,
            zone_id=zone_id,
            block=block,
            InstancePlatform=PLATFORM.get(environment.orchestrator.os, "Linux/UNIX"),  # pyright: ignore[reportAttributeAccessIssue]
            **(
                {
                    "PlacementGroupArn": f"arn:aws:ec2:{region}:{ACCOUNT}:placement-group/"
                    f"{capacity.placement_group}"
                }
                if isinstance(capacity, Reservation) and capacity.placement_group
                else {}
            ),
        )
