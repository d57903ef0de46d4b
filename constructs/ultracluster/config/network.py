"""The network of one environment: one zone, one subnet for nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Cidr, Many, Model, SecurityGroupId, SubnetId, VpcId


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


class ExistingSubnet(Model):
    """A private subnet made elsewhere, in the zone `network.zone_id`."""

    id: SubnetId
    cidr: Cidr


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


class Network(Model):
    """VPC, node subnet, egress and security group."""

    zone_id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", examples=["use1-az6"])]
    """Id of the one Availability Zone that all nodes and file systems are in. An id, not a name:
    `us-east-1a` is a different zone in each account; reservations and plans are matched by id."""
    cidr: Cidr = "10.0.0.0/16"
    """IPv4 network of the VPC that is made; ignored with `vpc`."""
    node_cidr: Cidr | None = None
    """IPv4 network of the node subnet; by default the first half of the VPC. Cannot change later: HyperPod
    would replace the cluster. The rules hold the IP budget against it."""
    egress: Literal["nat", "closed"] = "nat"
    """`nat`: out to the internet through a NAT gateway. `closed`: no internet route at all; AWS is
    reached through VPC endpoints."""
    vpc: ExistingVpc | None = None
    """Use this VPC instead of making one."""
    subnet: ExistingSubnet | None = None
    """Use this subnet for the nodes instead of making one; needs `vpc`."""
    security_group: ExistingSecurityGroup | None = None
    """Use this security group for the nodes instead of making one; needs `vpc`."""
    extra_endpoints: Many[Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]] = ()
    """Further interface endpoints by service name as in `com.amazonaws.<region>.<name>`."""
    flow_logs: FlowLogs = FlowLogs()
    """Flow logs of a VPC that is made."""
