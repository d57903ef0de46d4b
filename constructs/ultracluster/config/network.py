"""The network of one environment: one zone, one subnet for nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import BucketName, Cidr, Many, Model, SecurityGroupId, SubnetId, VpcId

ZoneId = Annotated[str, Field(pattern=r"^[a-z0-9-]+$", examples=["use1-az6"])]
"""Id of an Availability Zone, which is the same zone in each account; a name is not."""


class ExistingVpc(Model):
    """A VPC made elsewhere. Nothing is looked up at synth, so its CIDR is given here."""

    id: VpcId
    cidr: Cidr
    """The VPC's IPv4 network that holds (or will hold) the node subnet."""
    nat_gateway_id: Annotated[str, Field(pattern=r"^nat-[0-9a-f]{8,17}$")] | None = None
    """Where a node subnet that we make sends its internet traffic; only with `egress: nat`."""
    create_endpoints: bool = False
    """Add the interface and gateway endpoints to this VPC. Leave it off where they exist: a second
    endpoint with private DNS for the same service is refused by EC2."""
    endpoint_networks: Many[Cidr] = ()
    """IPv4 networks of the interface endpoints that nodes may reach with `egress: closed`, where they are in
    another VPC or in a further block of this one; by default `cidr`."""


class ExistingSubnet(Model):
    """A private subnet made elsewhere, in the zone `network.zone_id`."""

    id: SubnetId
    cidr: Cidr


class FurtherZone(Model):
    """The nodes' subnet in another Availability Zone: for groups that name the zone as their `zone_id`."""

    cidr: Cidr
    """IPv4 network of that subnet: within the VPC's, or a secondary block of a VPC that is made. Cannot
    change later: HyperPod never changes the network of a group."""
    subnet_id: SubnetId | None = None
    """A private subnet made elsewhere, in that zone; one is made by default."""


class ExistingSecurityGroup(Model):
    """A security group made elsewhere. It must allow all traffic in from and out to itself (EFA)."""

    id: SecurityGroupId


class FlowLogs(Model):
    """VPC flow logs, in CloudWatch Logs."""

    traffic: Literal["all", "reject"] = "reject"
    """`all` records accepted traffic, too: many gigabytes a day on a busy cluster. EFA traffic
    bypasses the IP stack and is in neither."""
    retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827] = 90
    """Days until CloudWatch Logs drops a record."""


class Perimeter(Model):
    """What may be reached through the VPC endpoints, besides this account and what this file names.

    The policies of the endpoints hold the data in, not the nodes' permissions: a node reaches a bucket of
    another account only if its role may, that bucket lets it in, and the endpoint lets it through.
    """

    organization: Annotated[str, Field(pattern=r"^o-[a-z0-9]{10,32}$", examples=["o-a1b2c3d4e5"])] | None = (
        None
    )
    """Id of your organization in AWS Organizations: principals and resources of all its accounts pass, as
    those of this account do. `aws organizations describe-organization` prints it."""
    accounts: Many[Annotated[str, Field(pattern=r"^[0-9]{12}$")]] = ()
    """Further AWS accounts, twelve digits in quotes, that are trusted as this one is: their principals and
    resources pass. E.g. the account of a container registry."""
    buckets: Many[BucketName] = ()
    """Further buckets, of any account, that the principals of these accounts may read and write. What the
    file names elsewhere (data repositories, mirror, scripts, logs) passes without being repeated here."""
    readable_buckets: Many[BucketName] = ()
    """Further buckets that anybody on the nodes may read, without signing the request, as package managers do
    it; e.g. public data sets."""


class Network(Model):
    """VPC, node subnet, egress and security group."""

    zone_id: ZoneId
    """Id of the one Availability Zone that all nodes and file systems are in. An id, not a name:
    `us-east-1a` is a different zone in each account; reservations and plans are matched by id."""
    cidr: Cidr = "10.0.0.0/16"
    """IPv4 network of the VPC that is made; ignored with `vpc`."""
    node_cidr: Cidr | None = None
    """IPv4 network of the node subnet; by default the first half of the VPC. One outside of `cidr` becomes a
    secondary CIDR block of the VPC that is made: a whole /16 for nodes. Cannot change later: HyperPod would
    replace the cluster. The rules hold the IP budget against it."""
    egress: Literal["nat", "closed"] = "nat"
    """`nat`: out to the internet through a NAT gateway. `closed`: no internet route at all; AWS is
    reached through VPC endpoints."""
    vpc: ExistingVpc | None = None
    """Use this VPC instead of making one."""
    subnet: ExistingSubnet | None = None
    """Use this subnet for the nodes instead of making one; needs `vpc`."""
    further_zones: dict[ZoneId, FurtherZone] = {}
    """Other Availability Zones, by id, in which groups may be (their `zone_id`). HyperPod: for Spot and for
    serving models. Where `zone_id` is a Local Zone: for head, login and system nodes, and the first zone here
    that is no Local Zone has the NAT gateway. EFA does not leave a zone."""
    security_group: ExistingSecurityGroup | None = None
    """Use this security group for the nodes instead of making one; needs `vpc`."""
    extra_endpoints: Many[Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]] = ()
    """Further interface endpoints by service name as in `com.amazonaws.<region>.<name>`."""
    perimeter: Perimeter = Perimeter.model_construct()
    """What may be reached through the VPC endpoints that are made, besides this account. With `egress: nat`
    S3 may be read anywhere, and written only here and in what is named."""
    flow_logs: FlowLogs = FlowLogs.model_construct()
    """Flow logs of a VPC that is made."""

    @property
    def makes_subnet(self) -> bool:
        """Whether a subnet of nodes is ours to make, in this zone or in a further one."""
        return self.subnet is None or any(zone.subnet_id is None for zone in self.further_zones.values())
