"""IPv4 addresses: which subnets a VPC is cut into, and who takes how many in the node subnet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from ultracluster.config.lustre import NewLustre
from ultracluster.config.network import Network
from ultracluster.config.storage import (
    FIRST_LUSTRE,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent2SsdLustre,
    Storage,
)
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.endpoints import made_endpoints

RESERVED_BY_EC2 = 5
"""Addresses of each subnet that EC2 keeps (network, router, DNS, future use, broadcast)."""
_BESIDE = 128
"""Addresses that hold all small subnets: 3 of 16, then 2 of 32 on a boundary of theirs."""
LARGEST_PREFIX, SMALLEST_PREFIX = 16, 28
"""EC2's subnets and VPC networks are from /16 (65,536 addresses) to /28 (16)."""


@dataclass(frozen=True, slots=True)
class Subnets:
    """The subnets of a VPC that we make. None where something that exists is used instead."""

    nodes: IPv4Network
    public: IPv4Network | None
    """For the NAT gateway."""
    database: tuple[IPv4Network, IPv4Network] | None
    """For the accounting database, in two zones; the function that makes its user has an address in each."""
    control_plane: tuple[IPv4Network, IPv4Network] | None = None
    """For the interfaces of an EKS control plane, in two zones."""

    @property
    def small(self) -> tuple[IPv4Network, ...]:
        """Those besides the node subnet."""
        return (*((self.public,) if self.public else ()), *(self.database or ()), *(self.control_plane or ()))


def secondary_blocks(network: Network) -> dict[str, IPv4Network]:
    """Further CIDR blocks of a VPC that is made: subnets of nodes that lie outside of `cidr`.

    By further zone; "" is that of the node subnet. A subnet in the block of another one takes none.
    """
    if network.vpc:
        return {}
    asked = {"": None if network.subnet else network.node_cidr}
    asked |= {zone: one.cidr for zone, one in network.further_zones.items() if one.subnet_id is None}
    blocks: dict[str, IPv4Network] = {}
    for place, cidr in asked.items():
        block = IPv4Network(cidr) if cidr else IPv4Network(network.cidr)
        if not any(block.subnet_of(one) for one in (IPv4Network(network.cidr), *blocks.values())):
            blocks[place] = block
    return blocks


def vpc_blocks(network: Network) -> tuple[IPv4Network, ...]:
    """The CIDR blocks of the VPC that are known, its first one first."""
    whole = IPv4Network(network.vpc.cidr if network.vpc else network.cidr)
    return (whole, *secondary_blocks(network).values())


def subnets(cluster: Cluster) -> Subnets:
    """How the network of a cluster is cut."""
    database = cluster.environment.storage.accounting_database
    return subnets_of(
        cluster.environment.network,
        database=database is not None and database.kind == "rds-mysql",
        control_plane=cluster.traits.kubernetes,
    )


def subnets_of(network: Network, *, database: bool = False, control_plane: bool = False) -> Subnets:
    """How a network is cut, with two subnets for a database and two for an EKS control plane if wanted.

    It depends on CIDRs only, never on node counts.
    A subnet's CIDR cannot change: EC2 would replace the subnet, and HyperPod the whole cluster.
    So nodes get the first half of the VPC, whatever the count is today, and the small subnets are
    taken from the end; from the beginning where `node_cidr` is at the end. A `node_cidr` outside is a block
    of its own. In a VPC that is too small the small subnets overlap or lie outside (NET004).
    """
    whole = IPv4Network(network.vpc.cidr if network.vpc else network.cidr)
    if network.subnet:
        nodes = IPv4Network(network.subnet.cidr)
    elif network.node_cidr:
        nodes = IPv4Network(network.node_cidr)
    else:
        half = min(SMALLEST_PREFIX, max(LARGEST_PREFIX, whole.prefixlen + 1))
        nodes = IPv4Network((whole.network_address, half), strict=False)
    if network.vpc:
        return Subnets(nodes, None, None)

    def cut(end: int) -> Subnets:
        small = [IPv4Network((max(0, end - 16 * place), 28), strict=False) for place in (1, 2, 3)]
        return Subnets(
            nodes,
            small[0] if network.egress == "nat" else None,
            (small[1], small[2]) if database else None,
            _control_plane(end) if control_plane else None,
        )

    last = int(whole.broadcast_address) + 1
    usual, other = cut(last), cut(min(last, int(whole.network_address) + _BESIDE))

    def fits(layout: Subnets) -> bool:
        return not any(small.overlaps(nodes) or not small.subnet_of(whole) for small in layout.small)

    return other if fits(other) and not fits(usual) else usual


def _control_plane(last: int) -> tuple[IPv4Network, IPv4Network]:
    """27 addresses each: EKS asks for 6 free ones and advises 16 (EKS User Guide, "VPC and subnets")."""
    first, second = (IPv4Network((max(0, last - 32 * place), 27), strict=False) for place in (3, 4))
    return first, second


@dataclass(frozen=True, slots=True)
class Row:
    """Who takes how many addresses of the node subnet."""

    what: str
    count: int
    each: int
    """Addresses that one takes; the best estimate where AWS publishes none."""
    certain: int
    """Addresses that one takes at the least, by AWS's own figures."""

    @property
    def total(self) -> int:
        return self.count * self.each

    @property
    def verified(self) -> bool:
        """Whether AWS's own figures say it all."""
        return self.each == self.certain

    def __str__(self) -> str:
        mark = "" if self.verified else " (estimate)"
        return f"{self.what}: {self.count} x {self.each} = {self.total}{mark}"


@dataclass(frozen=True, slots=True)
class AddressBudget:
    """The node subnet and everything that is to fit into it."""

    network: IPv4Network
    rows: tuple[Row, ...]

    @property
    def usable(self) -> int:
        return usable_addresses(self.network.prefixlen)

    @property
    def total(self) -> int:
        return sum(row.total for row in self.rows)

    @property
    def certain(self) -> int:
        """What is taken even where every estimate is too high."""
        return sum(row.count * row.certain for row in self.rows)

    @property
    def share(self) -> float:
        """Part of the usable addresses that is taken; above 1 it does not fit."""
        return self.total / self.usable if self.usable else math.inf

    def __str__(self) -> str:
        rows = "; ".join(str(row) for row in self.rows)
        return f"{self.total} of {self.usable} usable addresses in {self.network} ({rows})"


def usable_addresses(prefix: int) -> int:
    """Addresses of a subnet that EC2 does not keep to itself."""
    return max(0, 2 ** (32 - prefix) - RESERVED_BY_EC2)


def address_budget(cluster: Cluster) -> AddressBudget:
    """Who takes how many addresses of the node subnet, at the node counts of the file.

    An existing subnet is taken to be empty: `ultracluster preflight` asks for its free addresses.
    """
    nodes = _with_head_room(_nodes(cluster, cluster.environment.network.zone_id))
    endpoints = [row for row in made_endpoints(cluster) if row.kind == "interface"]
    rows = [
        *nodes,
        *(row for name, lustre in cluster.lustres.items() for row in _lustre(name, lustre.new)),
        *_openzfs(cluster.environment.storage),
        Row("interface endpoints", len(endpoints), 1, 1),
    ]
    return AddressBudget(subnets(cluster).nodes, tuple(row for row in rows if row.count))


def further_budgets(cluster: Cluster) -> dict[str, AddressBudget]:
    """The same of the subnets in other zones, by zone id: only nodes are in these."""
    return {
        zone: AddressBudget(IPv4Network(further.cidr), tuple(_with_head_room(_nodes(cluster, zone))))
        for zone, further in cluster.environment.network.further_zones.items()
    }


def other_addresses(cluster: Cluster) -> int:
    """What all but nodes take of the node subnet."""
    return address_budget(replace(cluster, groups={})).total


def _with_head_room(nodes: Iterator[Row]) -> list[Row]:
    rows = list(nodes)
    largest = max(rows, key=lambda row: row.each, default=None)
    return rows + ([Row("head-room for one replacement node", 1, largest.each, 0)] if largest else [])


def _nodes(cluster: Cluster, zone: str) -> Iterator[Row]:
    for name, group in cluster.groups.items():
        nodes = group.settings.max_nodes
        if nodes and group.zone_id == zone:
            each, certain = _hyperpod_node(group) if cluster.traits.hyperpod else _own_node(group)
            efa_only = group.settings.efa_interface == "efa-only"
            less = ", fewer with efa-only" if cluster.traits.hyperpod and efa_only else ""
            yield Row(f"{name} ({group.settings.instance_type}{less})", nodes, each, certain)


def _hyperpod_node(group: Group) -> tuple[int, int]:
    """Addresses of one HyperPod node: the best figure, and what AWS's own figures make certain.

    AWS publishes P5's 32 and 81 (SageMaker Developer Guide, "Prerequisites for using SageMaker HyperPod").
    Every node has one at least. How many `efa-only` saves is published nowhere: the full figure
    stands.
    """
    each, instance_type = 1, group.type
    if instance_type:
        figure = (
            instance_type.hyperpod_addresses_eks
            if group.traits.kubernetes
            else instance_type.hyperpod_addresses_slurm
        )
        each = figure or 1
    published = instance_type is not None and instance_type.hyperpod_addresses_verified
    return each, each if published and group.settings.efa_interface != "efa-only" else 1


def _own_node(group: Group) -> tuple[int, int]:
    """Addresses of one node that is launched from our own network-card plan, in the same two figures.

    One for each interface but `efa-only`. On EKS the VPC CNI adds addresses for pods: as many as one
    interface holds is the estimate (its warm pool; EKS Best Practices Guide, "Amazon VPC CNI").
    """
    plan = sum(interface.kind != "efa-only" for interface in group.interfaces) if group.interfaces else 1
    pods = (group.type.ipv4_per_interface if group.type else None) or 0
    return (max(plan, pods), plan) if group.traits.kubernetes else (plan, plan)


def _lustre(name: str, lustre: NewLustre | None) -> Iterator[Row]:
    """One address per metadata server and per object server (FSx for Lustre User Guide)."""
    if lustre is None:
        return
    what = "Lustre" if name == FIRST_LUSTRE else f"Lustre {name}"
    yield Row(f"{what} metadata servers", _metadata_servers(lustre), 1, 1)
    if isinstance(lustre, IntelligentTieringLustre):
        servers = math.ceil(lustre.throughput_mbps / 4000)  # its step; servers are not published
        yield Row(f"{what} object servers", servers, 1, 0)
    elif isinstance(lustre, Persistent1HddLustre):
        servers = math.ceil(lustre.capacity_gib / 1800)  # the smaller step of the two tiers
        yield Row(f"{what} object servers", servers, 1, 0)
    else:
        step = 2400
        if isinstance(lustre, Persistent2SsdLustre) and lustre.efa:
            step = _EFA_STEP.get(lustre.throughput_mbps_per_tib, step)
        yield Row(f"{what} object servers", math.ceil(lustre.capacity_gib / step), 1, 1)


_EFA_STEP = {125: 38_400, 250: 19_200, 500: 9_600, 1000: 4_800}
"""GiB per object server of a file system with EFA, by throughput in MB/s per TiB."""


def _metadata_servers(lustre: NewLustre) -> int:
    """One per 12000 metadata operations per second, which is the step in which they grow."""
    if not isinstance(lustre, Persistent2SsdLustre) or lustre.metadata_iops is None:
        return 1
    if lustre.metadata_iops == "automatic":  # 12000 per 24000 GiB from 48 TiB on
        return math.ceil(lustre.capacity_gib / 24_000) if lustre.capacity_gib >= 48_000 else 1
    return max(1, math.ceil(lustre.metadata_iops / 12_000))


def _openzfs(storage: Storage) -> Iterator[Row]:
    openzfs = storage.openzfs
    if openzfs and openzfs.deployment != "existing":
        servers = 2 if "-ha-" in openzfs.deployment else 1
        yield Row("OpenZFS file servers", servers, 1, 1 if servers == 1 else 0)
