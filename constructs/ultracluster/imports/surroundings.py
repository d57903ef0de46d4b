"""What an account says of the ids in somebody's file: subnets, file systems, images, reservations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A subnet that exists."""

    id: str
    cidr: str
    zone_id: str
    vpc: str
    vpc_cidr: str
    """The network of the VPC that holds the subnet."""
    public: bool = False
    """Nodes get public addresses in it by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A file system that exists."""

    id: str
    kind: Literal["lustre", "openzfs", "other"]
    dns_name: str = ""
    mount_name: str = ""
    """Of Lustre."""
    volume: str = ""
    """Root volume of OpenZFS."""
    security_group: str = ""
    """The first group of its network interfaces; empty where it could not be read."""
    efa: bool = False
    state: str = "AVAILABLE"
    made_as: str = ""
    """What the cluster's own configuration calls it, where the cluster's stack made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A Capacity Reservation or Capacity Block of the account."""

    id: str
    instance_type: str
    zone_id: str
    count: int
    block: bool = False
    open: bool = False
    """Any instance of its type, zone and platform goes into it by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the account says of everything that a cluster names."""

    account: str
    region: str
    subnets: Mapping[str, Subnet] = field(default_factory=dict[str, Subnet])
    """Those that the cluster names, and all others of their VPCs."""
    file_systems: Mapping[str, FileSystem] = field(default_factory=dict[str, FileSystem])
    """Those of the VPCs of these subnets, by id."""
    databases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Endpoint of a database -> its security group."""
    own_images: frozenset[str] = frozenset()
    """AMIs that the account itself owns."""
    reservations: tuple[Reserved, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict[str, str])
    """What could not be read -> why."""

    def file_system(self, text: str) -> FileSystem | None:
        """By its id, its DNS name, or the id of its root volume."""
        known = self.file_systems.values()
        return next((one for one in known if text and text in (one.id, one.dns_name, one.volume)), None)

    def made(self, name: str) -> FileSystem | None:
        """The one that the cluster's stack made by this name."""
        return next(
            (system for system in self.file_systems.values() if name and system.made_as == name), None
        )

    def private_pair(self, first: str) -> list[str]:
        """This subnet and one of another zone of its VPC; none where the VPC has no second zone."""
        here = self.subnets.get(first)
        if here is None:
            return []
        others = (
            subnet.id
            for subnet in self.subnets.values()
            if subnet.vpc == here.vpc and subnet.zone_id != here.zone_id and not subnet.public
        )
        second = next(others, None)
        return [first, second] if second else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is said beside a file."""

    name: str = ""
    """Of the environment."""
    region: str = ""
    """Where the file names none."""
    zone_id: str = ""
    around: Surroundings | None = None
    """What the account says, where the cluster runs and was asked."""
