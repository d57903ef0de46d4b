"""Connections of a server whose protocol needs more than one port, or answers by connections of its own.

The CDK's own `Connections` opens the one port that it is asked for, in one direction. Lustre's servers open
connections to clients, too, and EFA needs all traffic both ways (FSx for Lustre User Guide, "File system
access control with Amazon VPC"): half of the rules gives mounts that hang.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.network.admission import Admission, Traffic


class ServerConnections(ec2.Connections):
    """Whatever is asked for, all traffic of the server is admitted, as rules of their own (`Admission`).

    Each pair of groups gets its rules once, whoever asks: two equal rules would fail the deploy. Rules are in
    the stack of the client if that is another one: it comes and goes, the server stays.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        group: ec2.ISecurityGroup | None,
        traffic: Sequence[Traffic],
        mutual: bool = False,
    ) -> None:
        """Make the connections of a server.

        Args:
            scope: the server.
            group: its security group; None where it is not known: then nobody is admitted.
            traffic: what clients open; the first is the default port.
            mutual: the server opens connections to clients, too.
        """
        # without groups of its own the CDK adds no rules besides ours where a client asks
        super().__init__(default_port=_port(traffic[0]))
        self._scope = scope
        self._group = group
        self._traffic = traffic
        self._mutual = mutual
        self._admitted: dict[str, Admission] = {}

    @property
    def security_groups(self) -> list[ec2.ISecurityGroup]:
        return [self._group] if self._group else []

    def allow_from(
        self, other: ec2.IConnectable, port_range: ec2.Port, description: str | None = None
    ) -> None:
        """Let `other` reach the server, with all that its protocol needs; `port_range` is not read."""
        del port_range, description
        if self._group is None:
            return
        groups = other.connections.security_groups
        for group in groups:
            own, other_stack = Stack.of(self._scope), Stack.of(group)
            scope = self._scope if own.node.addr == other_stack.node.addr else other_stack
            self.admit(scope, f"Admit{self._scope.node.addr[-8:]}{group.node.addr[-8:]}", clients=group)
        if not groups:
            self._admit_peer(other)

    def allow_to(self, other: ec2.IConnectable, port_range: ec2.Port, description: str | None = None) -> None:
        """The same as `allow_from`: whom a file server has to reach are its clients."""
        self.allow_from(other, port_range, description)

    def admit(self, scope: Construct, construct_id: str, *, clients: ec2.IConnectable) -> list[Admission]:
        """Let the members of security groups reach the server.

        Args:
            scope: where the rules live; a stack of the clients, if they come and go.
            construct_id: id below `scope`.
            clients: a security group, or what is in some.

        Returns:
            What has to be there before a client connects; what was admitted earlier, too.
        """
        if self._group is None:
            return []
        by_id = {_same(self._scope, group): group for group in clients.connections.security_groups}
        new = [group for name, group in by_id.items() if name not in self._admitted]
        for number, group in enumerate(new, start=1):
            self._admitted[_same(self._scope, group)] = Admission(
                scope,
                construct_id if number == 1 else f"{construct_id}{number}",
                clients=group,
                servers=self._group,
                traffic=self._traffic,
                mutual=self._mutual,
            )
        return [self._admitted[name] for name in by_id]

    def _admit_peer(self, other: ec2.IConnectable) -> None:
        """Addresses and prefix lists, which have no group that rules could be added to."""
        assert self._group
        own = ec2.Connections(security_groups=[self._group])
        for traffic in self._traffic:
            own.allow_from(other, _port(traffic), f"Ultracluster: {traffic.name}")
            if self._mutual:
                own.allow_to(other, _port(traffic), f"Ultracluster: {traffic.name} Back")


class IServer(Protocol):
    """A file system or a database, made here or elsewhere."""

    @property
    def security_group(self) -> ec2.ISecurityGroup | None:
        """None where it is not known: then its owner admits the clients."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Opens all that the protocol needs."""
        ...

    @property
    def node(self) -> Any: ...

    def admit(self, scope: Construct, construct_id: str, *, clients: ec2.IConnectable) -> list[Admission]:
        """Let the members of security groups connect; see `ServerConnections.admit`."""
        ...


class Server(Construct):
    """Base of file systems and databases, made here or imported."""

    security_group: ec2.ISecurityGroup | None
    _connections: ServerConnections

    @property
    def connections(self) -> ec2.Connections:
        """Opens the database's port, all of NFS, or what Lustre needs both ways (with EFA, all traffic)."""
        return self._connections

    def admit(self, scope: Construct, construct_id: str, *, clients: ec2.IConnectable) -> list[Admission]:
        """Let the members of security groups connect.

        Args:
            scope: where the rules live; a stack of the clients, if they come and go.
            construct_id: id below `scope`.
            clients: a security group, or what is in some.

        Returns:
            What has to be there before a client connects or mounts.
        """
        return self._connections.admit(scope, construct_id, clients=clients)

    def _connect_through(
        self, group: ec2.ISecurityGroup | None, traffic: Sequence[Traffic], *, mutual: bool = False
    ) -> None:
        self.security_group = group
        self._connections = ServerConnections(self, group=group, traffic=traffic, mutual=mutual)


def _port(traffic: Traffic) -> ec2.Port:
    if traffic.protocol == "-1" or traffic.from_port is None or traffic.to_port is None:
        return ec2.Port.all_traffic()
    range_of = ec2.Port.udp_range if traffic.protocol == "udp" else ec2.Port.tcp_range
    if traffic.from_port == traffic.to_port:
        return (
            ec2.Port.udp(traffic.from_port) if traffic.protocol == "udp" else ec2.Port.tcp(traffic.from_port)
        )
    return range_of(traffic.from_port, traffic.to_port)


def _same(scope: Construct, group: ec2.ISecurityGroup) -> str:
    """The group's id, equal for two imports of one group."""
    return str(Stack.of(scope).resolve(group.security_group_id))
