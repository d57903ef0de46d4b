"""Which service quotas an environment takes, and how much of each; nothing is asked of AWS.

HyperPod's nodes count against quotas of SageMaker, in instances; nodes in the account against quotas of
EC2, in vCPUs. A Capacity Block counts against none. What exists already (a VPC, a file system) takes nothing
more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog.quotas import Quota, ec2_quota, quota, quota_by_type
from ultracluster.config.lustre import NewLustre
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.storage import (
    FIRST_LUSTRE,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.model.addresses import address_budget, other_addresses, secondary_blocks, subnets
from ultracluster.model.cluster import Cluster
from ultracluster.model.endpoints import made_endpoints

Scope = Literal["region", "zone", "vpc", "cluster", "resource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an environment takes of one quota."""

    quota: Quota
    amount: float
    """In the quota's unit."""
    why: str
    """What takes it."""
    scope: Scope = "region"
    """What else counts against it: everything in the Region, zone, VPC or cluster; `resource` is a
    limit of one thing, against which nothing else counts."""
    instance_type: str = ""
    """As EC2 writes it, where the quota is that of a type."""

    @property
    def unit(self) -> str:
        return self.quota.unit


def needs(cluster: Cluster) -> list[Need]:
    """Every quota that the environment takes something of, each once, at the greatest node counts."""
    found = [
        *_ec2(cluster),
        *_io2(cluster),
        *_hyperpod(cluster),
        *_network(cluster),
        *_kubernetes(cluster),
        *_storage(cluster),
        *_observability(cluster),
    ]
    return [need for need in _joined(found) if need.amount]


def _ec2(cluster: Cluster) -> Iterator[Need]:
    for name, group in cluster.in_account.items():
        if group.capacity.kind in ("capacity-block", "training-plan"):
            continue  # a block is paid for beforehand and counts against no quota
        instance_type = group.type
        family = group.settings.instance_type.partition(".")[0]
        found = ec2_quota(family, "spot" if group.capacity.kind == "spot" else "on-demand")
        if found and instance_type:
            nodes = group.most_nodes
            yield Need(
                quota=found,
                amount=nodes * instance_type.vcpu,
                why=f"{name}: {nodes} x {instance_type.vcpu} vCPUs",
            )


def _io2(cluster: Cluster) -> Iterator[Need]:
    for name, group in cluster.in_account.items():
        iops, nodes = group.settings.root_volume_iops, group.most_nodes
        if iops:
            gib = group.settings.root_volume_gib
            yield Need(quota=quota("io2-iops"), amount=nodes * iops, why=f"{name}: {nodes} root volumes")
            yield Need(
                quota=quota("io2-storage"), amount=nodes * gib / 1024, why=f"{name}: {nodes} root volumes"
            )


def _hyperpod(cluster: Cluster) -> Iterator[Need]:
    groups = cluster.in_service
    total = spot = 0
    for name, group in groups.items():
        nodes = group.most_nodes
        total += nodes
        is_spot = group.capacity.kind == "spot"
        spot += nodes if is_spot else 0
        for each in (group.settings.instance_type, *group.settings.instance_types):
            first = group.settings.instance_type
            other = "" if each == first else f", where {first} cannot be had"
            yield Need(
                quota=quota_by_type("hyperpod-spot-usage" if is_spot else "hyperpod-usage", each),
                amount=nodes, why=f"{name}: {nodes}{other}", instance_type=each,
            )  # fmt: skip
        if group.capacity.kind == "training-plan":
            yield Need(
                quota=quota_by_type("reserved-capacity", group.settings.instance_type), amount=nodes,
                why=f"{name}: the training plan", instance_type=group.settings.instance_type,
            )  # fmt: skip
    if not groups:
        return
    yield Need(quota=quota("hyperpod-instances-per-cluster"), amount=total, why="all groups", scope="cluster")
    yield Need(quota=quota("hyperpod-instances"), amount=total, why="all groups")
    yield Need(quota=quota("hyperpod-spot-instances"), amount=spot, why="groups on Spot")
    name, largest = max(
        ((name, group.second_volume_gib or 0) for name, group in groups.items()), key=lambda item: item[1]
    )
    if largest:
        yield Need(
            quota=quota("hyperpod-volume"), amount=largest,
            why=f"the largest volume, of {name}", scope="resource",
        )  # fmt: skip


def _network(cluster: Cluster) -> Iterator[Need]:
    network = cluster.environment.network
    makes_vpc = network.vpc is None
    nat = makes_vpc and network.egress == "nat"
    cut = subnets(cluster)
    further = sum(zone.subnet_id is None for zone in network.further_zones.values())
    new_subnets = len(cut.small) + (network.subnet is None) + further
    endpoints = sum(row.kind == "interface" for row in made_endpoints(cluster))
    yield Need(quota=quota("vpcs"), amount=int(makes_vpc), why="one for the environment")
    yield Need(
        quota=quota("subnets"), amount=new_subnets, why="nodes, NAT, database, control plane",
        scope="resource" if makes_vpc else "vpc",
    )  # fmt: skip
    if blocks := len(secondary_blocks(network)):
        yield Need(
            quota=quota("ipv4-blocks"), amount=1 + blocks, why="cidr and what lies outside of it",
            scope="resource",
        )  # fmt: skip
    if makes_vpc:
        yield _address_usage(cluster, endpoints + nat)
    yield Need(quota=quota("internet-gateways"), amount=int(nat), why="egress")
    six = nat and cluster.environment.dual_stack
    yield Need(quota=quota("egress-only-gateways"), amount=int(six), why="egress over IPv6")
    yield Need(quota=quota("nat-gateways"), amount=int(nat), why="egress", scope="zone")
    yield Need(quota=quota("elastic-ips"), amount=int(nat), why="the NAT gateway")
    yield Need(
        quota=quota("interface-endpoints"), amount=endpoints, why="VPC endpoints",
        scope="resource" if makes_vpc else "vpc",
    )  # fmt: skip
    yield Need(quota=quota("security-groups"), amount=_groups(cluster, endpoints), why="one for each part")
    if isinstance(cluster.settings, ParallelCluster):
        pools = len(cluster.with_role("login"))
        yield Need(quota=quota("network-load-balancers"), amount=pools, why="one for each login pool")
    yield Need(
        quota=quota("rules-per-group"),
        amount=RULES + RULES_OF_FURTHER_LUSTRE * len(cluster.environment.storage.further_lustre),
        why="the fullest group, both directions",
        scope="resource",
    )
    yield from _interfaces(cluster, int(nat))


RULES = 12
"""Rules of the fullest security group of ours: self, web, Lustre, NFS, database, API endpoint. AWS's
default is 60; a test holds it against what the stacks make."""
RULES_OF_FURTHER_LUSTRE = 2
"""Of the nodes' group for each of them, over TCP; over EFA one."""


def _groups(cluster: Cluster, endpoints: int) -> int:
    """Security groups that are made: nodes, endpoints, file systems, database, and those of the cluster."""
    storage = cluster.environment.storage
    database = storage.accounting_database
    return (
        (cluster.environment.network.security_group is None)
        + (endpoints > 0)
        + sum(lustre.new is not None for lustre in cluster.lustres.values())
        + (storage.openzfs is not None and storage.openzfs.deployment != "existing")
        + 2 * (database is not None and database.kind == "rds-mysql")  # and the function that makes its user
        + (cluster.environment.network.vpc is None)  # the default group of a VPC
        + cluster.traits.security_groups
        + len(cluster.settings.ssh_pools if isinstance(cluster.settings, ParallelCluster) else ())
    )


def _address_usage(cluster: Cluster, sixes: int) -> Need:
    """Units of a VPC that is made: one for an address or an interface of a node, 6 for an endpoint or NAT."""
    addresses = address_budget(cluster).total
    interfaces = sum(group.most_nodes * group.interface_count for group in cluster.groups.values())
    return Need(
        quota=quota("network-address-usage"),
        amount=addresses + interfaces + 6 * sixes,
        why=f"addresses {addresses}, interfaces of nodes {interfaces} (estimate)",
        scope="resource",
    )


def _interfaces(cluster: Cluster, nat: int) -> Iterator[Need]:
    nodes = sum(group.most_nodes * group.interface_count for group in cluster.groups.values())
    # without nodes the budget holds what else has an interface in the node subnet
    servers = other_addresses(cluster)
    database = cluster.environment.storage.accounting_database
    # and one in each of its two subnets for the function that makes its user
    databases = 3 + database.multi_az if database is not None and database.kind == "rds-mysql" else 0
    control_plane = 4 if cluster.traits.kubernetes else 0  # 2 to 4, EKS User Guide
    amount = nodes + servers + databases + control_plane + nat
    yield Need(
        quota=quota("network-interfaces"),
        amount=amount,
        why=f"nodes {nodes}, file systems and others the rest",
    )


def _kubernetes(cluster: Cluster) -> Iterator[Need]:
    if not cluster.traits.kubernetes:
        return
    yield Need(quota=quota("eks-clusters"), amount=1, why="the control plane")
    groups = cluster.in_account
    if groups:
        yield Need(quota=quota("eks-node-groups"), amount=len(groups), why="managed groups", scope="cluster")
        largest = max(group.most_nodes for group in groups.values())
        yield Need(
            quota=quota("eks-nodes-per-group"), amount=largest, why="the largest group", scope="resource"
        )


def _storage(cluster: Cluster) -> Iterator[Need]:
    for name, lustre in cluster.lustres.items():
        yield from _lustre(lustre.new, "Lustre" if name == FIRST_LUSTRE else f"Lustre {name}")
    openzfs = cluster.environment.storage.openzfs
    if openzfs is not None and openzfs.deployment != "existing":
        yield Need(quota=quota("openzfs-file-systems"), amount=1, why="home directories")
        yield Need(quota=quota("openzfs-capacity"), amount=openzfs.capacity_gib, why="home directories")
        yield Need(quota=quota("openzfs-throughput"), amount=openzfs.throughput_mbps, why="home directories")
    database = cluster.environment.storage.accounting_database
    if database is not None and database.kind == "rds-mysql":
        yield Need(quota=quota("db-instances"), amount=1, why="accounting database")


def _observability(cluster: Cluster) -> Iterator[Need]:
    wanted = cluster.environment.observability
    if wanted is None:
        return
    yield Need(quota=quota("prometheus-workspaces"), amount=int(wanted.makes_workspace), why="metrics")
    yield Need(quota=quota("grafana-workspaces"), amount=int(wanted.makes_grafana), why="dashboards")


def _lustre(lustre: NewLustre | None, why: str) -> Iterator[Need]:
    kind = ""
    match lustre:
        case ScratchLustre():
            kind = "scratch"
        case Persistent1SsdLustre():
            kind = "persistent-1"
        case Persistent2SsdLustre():
            kind = "persistent-2"
        case Persistent1HddLustre():
            yield Need(quota=quota("lustre-persistent-1-file-systems"), amount=1, why=why)
            yield Need(
                quota=quota("lustre-hdd-capacity"), amount=lustre.capacity_gib, why=why, scope="resource"
            )
        case IntelligentTieringLustre():
            # whether it counts as one of the PERSISTENT_2 file systems is published nowhere
            yield Need(
                quota=quota("lustre-intelligent-tiering-throughput"),
                amount=lustre.throughput_mbps,
                why=why,
            )
            cache = lustre.read_cache.gib or 0
            yield Need(quota=quota("lustre-intelligent-tiering-cache"), amount=cache, why="its read cache")
        case _:
            pass
    if kind and isinstance(lustre, ScratchLustre | Persistent1SsdLustre | Persistent2SsdLustre):
        yield Need(quota=quota(f"lustre-{kind}-file-systems"), amount=1, why=why)
        yield Need(quota=quota(f"lustre-{kind}-capacity"), amount=lustre.capacity_gib, why=why)


def _joined(found: list[Need]) -> Iterator[Need]:
    """Needs of the same quota added up."""
    by_quota: dict[Quota, list[Need]] = defaultdict(list)
    for need in found:
        by_quota[need.quota].append(need)
    for same, parts in by_quota.items():
        yield Need(
            quota=same,
            amount=math.fsum(part.amount for part in parts),
            why="; ".join(part.why for part in parts if part.amount) or parts[0].why,
            scope=parts[0].scope,
            instance_type=parts[0].instance_type,
        )
