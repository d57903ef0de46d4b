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

from ultracluster.catalog import InstanceType
from ultracluster.catalog.quotas import Quota, ec2_quota, quota, quota_by_type
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES
from ultracluster.config.storage import (
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.model.addresses import address_budget, subnets
from ultracluster.model.endpoints import made_endpoints
from ultracluster.model.network_cards import network_card_plan
from ultracluster.model.types import instance_type_of

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


def needs(environment: Environment) -> list[Need]:
    """Every quota that the environment takes something of, each once, at the greatest node counts."""
    found = [
        *_ec2(environment),
        *_hyperpod(environment),
        *_network(environment),
        *_kubernetes(environment),
        *_storage(environment),
    ]
    return [need for need in _joined(found) if need.amount]


def account_groups(environment: Environment) -> dict[str, NodeGroup]:
    """The node groups whose instances are in the user's account; HyperPod's are not."""
    kind = environment.orchestrator.kind
    if kind == "hyperpod-slurm":
        return {}
    if kind == "hyperpod-eks":
        return environment.groups("system")
    return dict(environment.node_groups)


def hyperpod_groups(environment: Environment) -> dict[str, NodeGroup]:
    """The node groups that HyperPod runs."""
    if environment.orchestrator.kind not in HYPERPOD:
        return {}
    own = account_groups(environment)
    return {name: group for name, group in environment.node_groups.items() if name not in own}


def most_nodes(environment: Environment, group: NodeGroup) -> int:
    """Nodes that a group may have at once, those of HyperPod's Karpenter included."""
    scaling = getattr(environment.orchestrator, "autoscaling", None)
    if scaling is not None and group.role == "compute" and group.count == 0:
        return max(group.greatest, scaling.max_nodes)
    return group.greatest


def interfaces_of_node(environment: Environment, group: NodeGroup) -> int:
    """Network interfaces of one node, those without an address included.

    HyperPod lays them out by itself: one for each network card is the best estimate (AWS publishes 32
    addresses for P5, which has 32 cards).
    """
    known = instance_type_of(environment, group)
    if known is None:
        return 1
    if environment.orchestrator.kind in HYPERPOD and group.role != "system":
        return max(1, known.network_cards)
    return _planned(environment, group, known)


def _planned(environment: Environment, group: NodeGroup, known: InstanceType) -> int:
    if group.role != "compute":
        return 1
    asked = group.efa_interface or getattr(environment.orchestrator, "efa_interface", None) or "efa-only"
    try:
        return len(network_card_plan(known, efa=asked))
    except ValueError:  # a type whose cards are unknown, or which takes another kind: rules say so
        return 1


def _ec2(environment: Environment) -> Iterator[Need]:
    for name, group in account_groups(environment).items():
        if group.capacity.kind in ("capacity-block", "training-plan"):
            continue  # a block is paid for beforehand and counts against no quota
        known = instance_type_of(environment, group)
        family = group.instance_type.partition(".")[0]
        found = ec2_quota(family, "spot" if group.capacity.kind == "spot" else "on-demand")
        if found and known:
            nodes = most_nodes(environment, group)
            yield Need(
                quota=found, amount=nodes * known.vcpu, why=f"{name}: {nodes} x {known.vcpu} vCPUs"
            )  # fmt: skip


def _hyperpod(environment: Environment) -> Iterator[Need]:
    groups = hyperpod_groups(environment)
    total = spot = 0
    for name, group in groups.items():
        nodes = most_nodes(environment, group)
        total += nodes
        is_spot = group.capacity.kind == "spot"
        spot += nodes if is_spot else 0
        for each in (group.instance_type, *group.instance_types):
            other = "" if each == group.instance_type else f", where {group.instance_type} cannot be had"
            yield Need(
                quota=quota_by_type("hyperpod-spot-usage" if is_spot else "hyperpod-usage", each),
                amount=nodes, why=f"{name}: {nodes}{other}", instance_type=each,
            )  # fmt: skip
        if group.capacity.kind == "training-plan":
            yield Need(
                quota=quota_by_type("reserved-capacity", group.instance_type), amount=nodes,
                why=f"{name}: the training plan", instance_type=group.instance_type,
            )  # fmt: skip
    if not groups:
        return
    yield Need(quota=quota("hyperpod-instances-per-cluster"), amount=total, why="all groups", scope="cluster")
    yield Need(quota=quota("hyperpod-instances"), amount=total, why="all groups")
    yield Need(quota=quota("hyperpod-spot-instances"), amount=spot, why="groups on Spot")
    largest = max(groups.items(), key=lambda item: item[1].volume_gib)
    yield Need(
        quota=quota("hyperpod-volume"), amount=largest[1].volume_gib,
        why=f"the largest volume, of {largest[0]}", scope="resource",
    )  # fmt: skip


def _network(environment: Environment) -> Iterator[Need]:
    network = environment.network
    makes_vpc = network.vpc is None
    nat = makes_vpc and network.egress == "nat"
    cut = subnets(environment)
    made = len(cut.small) + (network.subnet is None)
    endpoints = sum(row.kind == "interface" for row in made_endpoints(environment))
    yield Need(quota=quota("vpcs"), amount=int(makes_vpc), why="one for the environment")
    yield Need(
        quota=quota("subnets"), amount=made, why="nodes, NAT, database, control plane",
        scope="resource" if makes_vpc else "vpc",
    )  # fmt: skip
    yield Need(quota=quota("internet-gateways"), amount=int(nat), why="egress")
    yield Need(quota=quota("nat-gateways"), amount=int(nat), why="egress", scope="zone")
    yield Need(quota=quota("elastic-ips"), amount=int(nat), why="the NAT gateway")
    yield Need(
        quota=quota("interface-endpoints"), amount=endpoints, why="VPC endpoints",
        scope="resource" if makes_vpc else "vpc",
    )  # fmt: skip
    yield Need(
        quota=quota("security-groups"), amount=_groups(environment, endpoints), why="one for each part"
    )
    yield Need(
        quota=quota("rules-per-group"),
        amount=RULES,
        why="the fullest group, both directions",
        scope="resource",
    )
    yield from _interfaces(environment, int(nat))


RULES = 12
"""Rules of the fullest security group of ours: self, web, Lustre, NFS, database, API endpoint. AWS's
default is 60; a test holds it against what the stacks make."""


def _groups(environment: Environment, endpoints: int) -> int:
    """Security groups that are made: nodes, endpoints, file systems, database, and those of the cluster."""
    storage = environment.storage
    database = storage.accounting_database
    own = {
        "eks": 3,
        "hyperpod-eks": 3,
        "parallelcluster": 4,
    }  # handler, control plane; head node, logins, nodes
    return (
        (environment.network.security_group is None)
        + (endpoints > 0)
        + (storage.lustre is not None and storage.lustre.deployment != "existing")
        + (storage.openzfs is not None and storage.openzfs.deployment != "existing")
        + (database is not None and database.kind == "rds-mysql")
        + (environment.network.vpc is None)  # the default group of a VPC
        + own.get(environment.orchestrator.kind, 0)
    )


def _interfaces(environment: Environment, nat: int) -> Iterator[Need]:
    nodes = sum(
        most_nodes(environment, group) * interfaces_of_node(environment, group)
        for group in environment.node_groups.values()
    )
    # without nodes the budget holds what else has an interface in the node subnet
    servers = address_budget(environment.model_copy(update={"node_groups": {}})).total
    database = environment.storage.accounting_database
    databases = 1 + database.multi_az if database is not None and database.kind == "rds-mysql" else 0
    control_plane = 4 if environment.orchestrator.kind in KUBERNETES else 0  # 2 to 4, EKS User Guide
    amount = nodes + servers + databases + control_plane + nat
    yield Need(
        quota=quota("network-interfaces"),
        amount=amount,
        why=f"nodes {nodes}, file systems and others the rest",
    )


def _kubernetes(environment: Environment) -> Iterator[Need]:
    if environment.orchestrator.kind not in KUBERNETES:
        return
    yield Need(quota=quota("eks-clusters"), amount=1, why="the control plane")
    groups = account_groups(environment)
    if groups:
        yield Need(quota=quota("eks-node-groups"), amount=len(groups), why="managed groups", scope="cluster")
        largest = max(most_nodes(environment, group) for group in groups.values())
        yield Need(
            quota=quota("eks-nodes-per-group"), amount=largest, why="the largest group", scope="resource"
        )


def _storage(environment: Environment) -> Iterator[Need]:
    yield from _lustre(environment)
    openzfs = environment.storage.openzfs
    if openzfs is not None and openzfs.deployment != "existing":
        yield Need(quota=quota("openzfs-file-systems"), amount=1, why="home directories")
        yield Need(quota=quota("openzfs-capacity"), amount=openzfs.capacity_gib, why="home directories")
        yield Need(quota=quota("openzfs-throughput"), amount=openzfs.throughput_mbps, why="home directories")
    database = environment.storage.accounting_database
    if database is not None and database.kind == "rds-mysql":
        yield Need(quota=quota("db-instances"), amount=1, why="accounting database")


def _lustre(environment: Environment) -> Iterator[Need]:
    lustre = environment.storage.lustre
    kind = ""
    match lustre:
        case ScratchLustre():
            kind = "scratch"
        case Persistent1SsdLustre():
            kind = "persistent-1"
        case Persistent2SsdLustre():
            kind = "persistent-2"
        case Persistent1HddLustre():
            yield Need(quota=quota("lustre-persistent-1-file-systems"), amount=1, why="Lustre")
            yield Need(
                quota=quota("lustre-hdd-capacity"), amount=lustre.capacity_gib, why="Lustre", scope="resource"
            )
        case IntelligentTieringLustre():
            # whether it counts as one of the PERSISTENT_2 file systems is published nowhere
            yield Need(
                quota=quota("lustre-intelligent-tiering-throughput"),
                amount=lustre.throughput_mbps,
                why="Lustre",
            )
            cache = lustre.read_cache.gib or 0
            yield Need(quota=quota("lustre-intelligent-tiering-cache"), amount=cache, why="its read cache")
        case _:
            pass
    if kind and isinstance(lustre, ScratchLustre | Persistent1SsdLustre | Persistent2SsdLustre):
        yield Need(quota=quota(f"lustre-{kind}-file-systems"), amount=1, why="Lustre")
        yield Need(quota=quota(f"lustre-{kind}-capacity"), amount=lustre.capacity_gib, why="Lustre")


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
