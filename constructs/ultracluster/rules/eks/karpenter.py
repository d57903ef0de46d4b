"""Rules on: Kubernetes on EKS. Groups that Karpenter launches."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.capacity import Reservation
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, inside, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.eks.groups import launched_by_karpenter
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

DOCUMENTATION = "Karpenter 1.14 documentation"
CLASSES = f"{DOCUMENTATION}, NodeClasses"
DATE = "2026-11-21"
_GROUPS: Path = ("orchestrator", "karpenter", "groups")


def _groups(environment: Environment) -> Iterator[tuple[Path, str, NodeGroup]]:
    """Karpenter's groups that exist, and where each is named."""
    for index, name in enumerate(launched_by_karpenter(environment)):
        if group := environment.node_groups.get(name):
            yield (*_GROUPS, index), name, group


@EKS.rule(
    50,
    "error",
    "Karpenter launches compute groups that there are, each once",
    source=f"{DOCUMENTATION}, Getting Started: the controller needs a node that it did not launch; "
    "Kubernetes documentation, Object Names and IDs",
    date=DATE,
)
def karpenter_groups_exist(environment: Environment) -> Iterator[Breach]:
    names = launched_by_karpenter(environment)
    lower = Counter(name.lower() for name in names)
    compute = [
        name
        for name, group in environment.groups("compute").items()
        if name.lower() not in lower and group.greatest and group.count in (0, group.greatest)
    ]
    for index, name in enumerate(names):
        group = environment.node_groups.get(name)
        if group is None:
            near = difflib.get_close_matches(name, compute, n=1)
            yield Breach(
                (*_GROUPS, index),
                f"there is no node group `{name}`.",
                write(near[0]) if near else _left_to_eks(environment),
            )
        elif group.role != "compute":
            yield Breach(
                (*_GROUPS, index),
                f"`{name}` has the role {group.role}: Karpenter runs there itself and could not start it.",
                _left_to_eks(environment),
            )
        elif lower[name.lower()] > 1:
            yield Breach(
                (*_GROUPS, index),
                f"`{name}` is named {lower[name.lower()]} times; names of Kubernetes have no capitals.",
                _left_to_eks(environment),
            )


@EKS.rule(
    51,
    "error",
    "UltraServers are not launched by Karpenter",
    source="EKS User Guide, Use P6e-GB200 UltraServers with Amazon EKS (ml-eks-nvidia-ultraserver)",
    date=DATE,
)
def karpenter_ultraserver(environment: Environment) -> Iterator[Breach]:
    for path, name, group in _groups(environment):
        known = instance_type_of(environment, group)
        if known and known.ultraserver:
            yield Breach(
                path,
                f"`{name}` is {known.name}, of an UltraServer, which EKS has in managed node groups only.",
                _left_to_eks(environment).noting("the group is then a managed node group"),
            )


@EKS.rule(
    52,
    "error",
    "A group of Karpenter's is of a fixed size, or starts from nothing",
    source=f"{DOCUMENTATION}, NodePools (spec.replicas, spec.limits)",
    date=DATE,
)
def karpenter_counts(environment: Environment) -> Iterator[Breach]:
    for _, name, group in _groups(environment):
        if not group.greatest:
            yield Breach(
                ("node_groups", name, "count"),
                "0 nodes always, and none at the most: Karpenter would never start one.",
                beside(max_count=1).noting("or as many nodes as it may start"),
            )
        elif group.count and group.greatest > group.count:
            yield Breach(
                ("node_groups", name, "max_count"),
                f"{group.count} nodes always and up to {group.greatest} for jobs are two pools: one of "
                "Karpenter's has a fixed size, or grows from nothing.",
                (beside(count=0) | drop()).noting(
                    f"without max_count a second group may have max_count: {group.greatest - group.count}"
                ),
            )


@EKS.rule(
    53,
    "warning",
    "Nodes that are always there are a managed node group's",
    source=f"{DOCUMENTATION}, Settings: StaticCapacity is alpha and off by default",
    date=DATE,
)
def karpenter_static(environment: Environment) -> Iterator[Breach]:
    for path, name, group in _groups(environment):
        if group.count:
            yield Breach(
                path,
                f"`{name}` always has {group.count} nodes, for which a feature of Karpenter is switched on "
                "that is alpha; a newer image reaches a node only when its NodeClaim is deleted.",
                _left_to_eks(environment).noting("a managed node group keeps nodes, too"),
            )


@EKS.rule(
    54,
    "error",
    "A group asks nothing that Karpenter lacks",
    source=f"{CLASSES} (networkInterfaces, cpuOptions, capacityReservationSelectorTerms)",
    date=DATE,
)
def karpenter_lacks(environment: Environment) -> Iterator[Breach]:
    for _, name, group in _groups(environment):
        capacity = group.capacity
        if group.threads_per_core:
            yield Breach(
                ("node_groups", name, "threads_per_core"),
                "Karpenter cannot turn multithreading on or off.",
                drop(),
            )
        if group.efa_interface == "efa":
            yield Breach(
                ("node_groups", name, "efa_interface"),
                "Karpenter's classes of nodes take interfaces of kind `interface` and `efa-only`.",
                write("efa-only"),
            )
        if isinstance(capacity, Reservation) and capacity.resource_group_arn:
            yield Breach(
                ("node_groups", name, "capacity", "resource_group_arn"),
                "Karpenter selects reservations by id or tags, never by resource group, and uses none "
                "that is not selected.",
                ask("fact", "id: cr-..."),
            )


@EKS.rule(
    55,
    "error",
    "Karpenter in a closed network reaches its queue",
    source=f"{DOCUMENTATION}, Getting Started: private clusters",
    date=DATE,
)
def karpenter_closed(environment: Environment) -> Iterator[Breach]:
    network = environment.network
    made = network.vpc is None or network.vpc.create_endpoints
    if (
        launched_by_karpenter(environment)
        and network.egress == "closed"
        and made
        and "sqs" not in network.extra_endpoints
    ):
        yield Breach(
            ("network",),
            "egress is `closed` and there is no endpoint for Amazon SQS, from which Karpenter reads that "
            "nodes are about to end.",
            inside(extra_endpoints=[*network.extra_endpoints, "sqs"]),
        )


@EKS.rule(
    56,
    "warning",
    "Karpenter finds reserved capacity for nodes with EFA",
    source="aws/karpenter-provider-aws#9489 (release 1.14.0; which one mends it is not published)",
    date="2026-11-22",
    by_hand="kubectl get nodeclaims; kubectl describe ec2nodeclass <group>",
)
def karpenter_reserved_efa(environment: Environment) -> Iterator[Breach]:
    for path, name, group in _groups(environment):
        known = instance_type_of(environment, group)
        if group.capacity.kind in ("reservation", "capacity-block") and known and known.efa_interfaces:
            yield Breach(
                path,
                f"`{name}` has reserved capacity and EFA interfaces: Karpenter was seen to hold such "
                "capacity for unavailable, so that pods wait and no log says why.",
                _left_to_eks(environment).noting(
                    "a managed node group takes reserved capacity; or acknowledge this once it works"
                ),
            )


def _left_to_eks(environment: Environment) -> Remedy:
    """The group is named no more; with the last one Karpenter goes."""
    return drop() if len(launched_by_karpenter(environment)) > 1 else anywhere({_GROUPS[:-1]: DROP})
