"""Rules that admit one security group to another, as resources of their own.

A file system's list of groups never changes (FSx would replace the file system); whom its group admits
changes by adding and removing rules. For the rules it does not matter who made the two groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


@dataclass(frozen=True, slots=True)
class Traffic:
    """An IP protocol with a range of ports; `protocol="-1"` is everything."""

    name: str
    protocol: str
    from_port: int | None = None
    to_port: int | None = None


ALL_TRAFFIC = (Traffic("All", "-1"),)
# FSx for Lustre User Guide, "File system access control with Amazon VPC"
LUSTRE = (Traffic("Lnet", "tcp", 988, 988), Traffic("LnetServers", "tcp", 1018, 1023))
# FSx for OpenZFS User Guide, "File system access control with Amazon VPC"
NFS = (
    Traffic("PortmapTcp", "tcp", 111, 111),
    Traffic("PortmapUdp", "udp", 111, 111),
    Traffic("NfsTcp", "tcp", 2049, 2049),
    Traffic("NfsUdp", "udp", 2049, 2049),
    Traffic("MountTcp", "tcp", 20001, 20003),
    Traffic("MountUdp", "udp", 20001, 20003),
)
MYSQL = (Traffic("MySql", "tcp", 3306, 3306),)


class Admission(Construct):
    """`clients` may open the given traffic to `servers`; both ways with `mutual`.

    Attributes:
        rules: the rule resources, for dependencies.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        clients: ec2.IConnectable,
        servers: ec2.IConnectable,
        traffic: Sequence[Traffic],
        mutual: bool = False,
    ) -> None:
        """Add the rules to all groups of both.

        Args:
            clients: who opens connections: a security group, or what is in some.
            servers: who accepts them.
            traffic: what is allowed.
            mutual: servers may open connections to clients, too (Lustre callbacks); by default False.
        """
        super().__init__(scope, construct_id)
        self.rules: list[CfnResource] = []
        pairs = [(client, server) for client in groups_of(clients) for server in groups_of(servers)]
        for number, (client, server) in enumerate(pairs, start=1):
            suffix = "" if number == 1 else str(number)
            for row in traffic:
                self._pair("", row, client, server, suffix)
                if mutual and client != server:
                    self._pair("Back", row, server, client, suffix)

    def _pair(self, prefix: str, traffic: Traffic, source: str, target: str, suffix: str) -> None:
        description = f"Ultracluster: {traffic.name} {prefix}".strip()
        self.rules += [
            ec2.CfnSecurityGroupIngress(
                self, f"{prefix}Ingress{traffic.name}{suffix}", group_id=target,
                source_security_group_id=source, ip_protocol=traffic.protocol,
                from_port=traffic.from_port, to_port=traffic.to_port, description=description,
            ),
            ec2.CfnSecurityGroupEgress(
                self, f"{prefix}Egress{traffic.name}{suffix}", group_id=source,
                destination_security_group_id=target, ip_protocol=traffic.protocol,
                from_port=traffic.from_port, to_port=traffic.to_port, description=description,
            ),
        ]  # fmt: skip


def groups_of(connectable: ec2.IConnectable) -> list[str]:
    """Ids of its security groups, each once."""
    return list(dict.fromkeys(group.security_group_id for group in connectable.connections.security_groups))


def isolated_group(
    scope: Construct,
    construct_id: str,
    *,
    vpc_id: str,
    description: str,
    removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
) -> ec2.CfnSecurityGroup:
    """A group that lets nothing in or out until rules are added to it.

    Args:
        removal_policy: that of what is in the group: EC2 deletes no group that has members.
    """
    group = ec2.CfnSecurityGroup(
        scope, construct_id, vpc_id=vpc_id, group_description=description,
        # an empty list makes EC2 add its default rule, all traffic to 0.0.0.0/0
        security_group_egress=[NOWHERE],
    )  # fmt: skip
    if removal_policy is not RemovalPolicy.DESTROY:
        group.apply_removal_policy(removal_policy)
    return group


NOWHERE = ec2.CfnSecurityGroup.EgressProperty(
    ip_protocol="icmp", from_port=252, to_port=86, cidr_ip="255.255.255.255/32", description="Nothing"
)
"""The CDK's own way of saying "no egress": a rule that matches no packet."""
