"""IPv4 addresses: which subnets a VPC is cut into, and who takes how many in the node subnet."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from ultracluster.config import Environment

RESERVED_BY_EC2 = 5
"""Addresses of each subnet that EC2 keeps (network, router, DNS, future use, broadcast)."""


@dataclass(frozen=True, slots=True)
class Subnets:
    """The subnets of a VPC that we make. None where something that exists is used instead."""

    nodes: IPv4Network
    public: IPv4Network | None
    """For the NAT gateway."""
    database: tuple[IPv4Network, IPv4Network] | None
    """For the accounting database, in two zones."""


def subnets(environment: Environment) -> Subnets:
    """How the network is cut. It depends on CIDRs only, never on node counts.

    A subnet's CIDR cannot change: EC2 would replace the subnet, and HyperPod the whole cluster. So nodes get
    the first half of the VPC, whatever the count is today, and the small subnets are taken from the end.
    """
    network = environment.network
    whole = IPv4Network(network.vpc.cidr if network.vpc else network.cidr)
    if network.subnet:
        nodes = IPv4Network(network.subnet.cidr)
    elif network.node_cidr:
        nodes = IPv4Network(network.node_cidr)
    else:
        nodes = IPv4Network((whole.network_address, min(28, max(16, whole.prefixlen + 1))))
    if network.vpc:
        return Subnets(nodes, None, None)
    last = int(whole.broadcast_address) + 1
    small = [IPv4Network((last - 16 * place, 28)) for place in (1, 2, 3)]
    database = environment.storage.accounting_database
    return Subnets(
        nodes,
        small[0] if network.egress == "nat" else None,
        (small[1], small[2]) if database and database.kind == "rds-mysql" else None,
    )
