"""The security group of EFA nodes (EC2 User Guide, "Get started with EFA and MPI", step 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import jsii
from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, Dependable, IConstruct

from ultracluster.guard.objects import take_objects
from ultracluster.network.admission import NOWHERE, groups_of

WEB_PORTS = (80, 443)
BETWEEN_NODES = "EFA and everything else between nodes"


class IEfaSecurityGroup(Protocol):
    """A security group of EFA nodes, made here or elsewhere."""

    @property
    def security_group(self) -> ec2.ISecurityGroup:
        """What depends on it waits for the rules within the group, too."""
        ...

    @property
    def self_rules(self) -> Sequence[CfnResource]:
        """The rules within the group that were made here."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Its default port is all traffic, both ways, as EFA needs it."""
        ...


class EfaConnections(ec2.Connections):
    """Of a group with EFA: whoever is admitted with all traffic is so both ways, as EFA needs it.

    A single port is opened as the CDK does it: in one direction.
    """

    def __init__(self, group: ec2.ISecurityGroup) -> None:
        super().__init__(security_groups=[group], default_port=ec2.Port.all_traffic())
        self._group = group

    def allow_from(
        self, other: ec2.IConnectable, port_range: ec2.Port, description: str | None = None
    ) -> None:
        """Let `other` in, and with all traffic also let members of the group reach `other`."""
        if _everything(port_range):
            self._both_ways(other, description)
        else:
            super().allow_from(other, port_range, description)

    def allow_to(self, other: ec2.IConnectable, port_range: ec2.Port, description: str | None = None) -> None:
        """Let members reach `other`, and with all traffic also let `other` in."""
        if _everything(port_range):
            self._both_ways(other, description)
        else:
            super().allow_to(other, port_range, description)

    def allow_internally(self, port_range: ec2.Port, description: str | None = None) -> None:
        """Nothing: everything within the group is open, and a second equal rule would fail the deploy."""

    def _both_ways(self, other: ec2.IConnectable, description: str | None) -> None:
        groups = other.connections.security_groups
        own = groups_of(self)
        others = [group for group in groups if group.security_group_id not in own]
        if groups and not others:
            return  # itself
        # the groups without who asks: the CDK keeps one that asks from being asked back
        peer = ec2.Connections(security_groups=others) if groups else other
        everything = ec2.Port.all_traffic()
        super().allow_from(peer, everything, description or BETWEEN_NODES)
        super().allow_to(peer, everything, description or BETWEEN_NODES)


@jsii.implements(ec2.IConnectable)
class EfaSecurityGroup(Construct):
    """All traffic in from, and out to, the group itself; out to the web for package mirrors and AWS APIs.

    Both self rules are resources of their own, because the CDK drops the self-referencing egress rule
    of a group that allows all outbound traffic, and EFA then does not come up. Nothing else may come in
    until `connections` says so.

    Attributes:
        security_group: the group; what depends on it waits for the self rules.
        self_rules: the rules that let members reach each other.
        self_ingress: that of them which lets members in.
    """

    @classmethod
    def from_security_group(
        cls,
        scope: Construct,
        construct_id: str,
        security_group: ec2.ISecurityGroup,
        *,
        self_rules: bool = False,
    ) -> IEfaSecurityGroup:
        """A group made elsewhere.

        Args:
            security_group: the group.
            self_rules: add the two rules that let members reach each other. By default it has them: EFA does
                not come up without, and EC2 refuses a rule that is there already.
        """
        return _GivenGroup(scope, construct_id, security_group, self_rules=self_rules)

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        web_ports: Sequence[int] = WEB_PORTS,
        ipv6: bool = False,
    ) -> None:
        """Make the group.

        Args:
            vpc: the VPC of the nodes.
            web_ports: TCP ports open to any IPv4 address, outbound. A network without an internet route needs
                none: `ClusterEgress.admit` opens the way to endpoints and gateways. There is no rule for all
                traffic to 0.0.0.0/0: HyperPod's prerequisites warn that it may fail the EFA health checks. By
                default 80 and 443.
            ipv6: open them to any IPv6 address as well; by default False.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        group = ec2.CfnSecurityGroup(
            self,
            "Resource",
            group_description="EFA nodes: all traffic within the group",
            vpc_id=vpc.vpc_id,
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp", from_port=port, to_port=port, **anywhere,
                    description="Package mirrors and AWS APIs",
                )
                for anywhere in ({"cidr_ip": "0.0.0.0/0"}, *([{"cidr_ipv6": "::/0"}] if ipv6 else []))
                for port in web_ports
            ]
            # an empty list makes EC2 add its default rule, all traffic to 0.0.0.0/0
            or [NOWHERE],
        )  # fmt: skip
        self.resource = group
        self.security_group = ec2.SecurityGroup.from_security_group_id(
            self, "Group", group.attr_group_id, allow_all_outbound=False
        )
        self.self_rules: Sequence[CfnResource] = _self_rules(self, group.attr_group_id)
        self.self_ingress = self.self_rules[0]
        _wait_for(self.security_group, self.self_rules)
        self._connections = EfaConnections(self.security_group)

    @property
    def connections(self) -> ec2.Connections:
        """Its default port is all traffic, both ways, as EFA needs it."""
        return self._connections


@jsii.implements(ec2.IConnectable)
class _GivenGroup(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, group: ec2.ISecurityGroup, *, self_rules: bool
    ) -> None:
        super().__init__(scope, construct_id)
        self.security_group = group
        self.self_rules: Sequence[CfnResource] = ()
        if self_rules:
            self.self_rules = _self_rules(self, group.security_group_id)
            # the group itself may be a resource: this import of it is not
            self.security_group = ec2.SecurityGroup.from_security_group_id(
                self, "Group", group.security_group_id, allow_all_outbound=False
            )
            _wait_for(self.security_group, [*self.self_rules, group])
        self._connections = EfaConnections(self.security_group)

    @property
    def connections(self) -> ec2.Connections:
        return self._connections


def _self_rules(scope: Construct, group_id: str) -> Sequence[CfnResource]:
    return (
        ec2.CfnSecurityGroupIngress(
            scope, "SelfIngress", group_id=group_id, ip_protocol="-1",
            source_security_group_id=group_id, description=BETWEEN_NODES,
        ),
        ec2.CfnSecurityGroupEgress(
            scope, "SelfEgress", group_id=group_id, ip_protocol="-1",
            destination_security_group_id=group_id, description=BETWEEN_NODES,
        ),
    )  # fmt: skip


def _wait_for(group: ec2.ISecurityGroup, rules: Sequence[IConstruct]) -> None:
    """Let whatever depends on the group wait for these rules, and for those that are added to it later."""
    Dependable.implement(group, _Rules(group, rules))


class _Rules(Dependable):
    def __init__(self, group: ec2.ISecurityGroup, rules: Sequence[IConstruct]) -> None:
        super().__init__()
        self._group = group
        self._rules = rules

    @property
    def dependency_roots(self) -> list[IConstruct]:
        return [*self._rules, *self._group.node.children]


def _everything(port: ec2.Port) -> bool:
    return port.to_string() == _ALL


_ALL = ec2.Port.all_traffic().to_string()
