"""Rules on: Kubernetes on EKS. Groups that Karpenter launches."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from ultracluster.config.capacity import Reservation
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Karpenter
from ultracluster.config.network import Network
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, inside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

DOCUMENTATION = "Karpenter 1.14 documentation"
CLASSES = f"{DOCUMENTATION}, NodeClasses"
DATE = "2026-11-21"


@EKS.error(
    50,
    f"{DOCUMENTATION}, Getting Started: the controller needs a node that it did not launch; "
    "Kubernetes documentation, Object Names and IDs",
    DATE,
)
def karpenter_groups_exist(karpenter: Karpenter, cluster: Cluster) -> Breaches:
    """karpenter.groups names existing compute groups, each once."""
    lower = Counter(name.lower() for name in karpenter.groups)
    compute = [
        name
        for name, group in cluster.with_role("compute").items()
        if name.lower() not in lower and group.most_nodes and group.settings.count in (0, group.most_nodes)
    ]
    for index, name in enumerate(karpenter.groups):
        group = cluster.groups.get(name)
        if group is None:
            near = difflib.get_close_matches(name, compute, n=1)
            yield at("groups", index).breach(
                f"there is no node group `{name}`.", write(near[0]) if near else _left_to_eks(karpenter)
            )
        elif group.role != "compute":
            yield at("groups", index).breach(
                f"`{name}` has the role {group.role}: Karpenter itself runs on these nodes and cannot launch "
                "them.",
                _left_to_eks(karpenter),
            )
        elif lower[name.lower()] > 1:
            yield at("groups", index).breach(
                f"`{name}` is named {lower[name.lower()]} times; names in Kubernetes have no capitals.",
                _left_to_eks(karpenter),
            )


@EKS.error(51, "EKS User Guide, Use P6e-GB200 UltraServers with Amazon EKS (ml-eks-nvidia-ultraserver)", DATE)
def karpenter_excludes_ultraservers(karpenter: Karpenter, cluster: Cluster) -> Breaches:
    """Karpenter does not launch UltraServers."""
    for path, group in _groups(karpenter, cluster):
        if group.type and group.type.ultraserver:
            yield at(*path).breach(
                f"`{group.name}` has {group.type.name}, an UltraServer type, which EKS supports in managed "
                "node groups only.",
                _left_to_eks(karpenter).noting("the group is then a managed node group"),
            )


@EKS.error(52, f"{DOCUMENTATION}, NodePools (spec.replicas, spec.limits)", DATE)
def karpenter_counts(group: Group) -> Breaches:
    """A group of Karpenter has a fixed size, or starts from zero nodes."""
    if not group.by_karpenter:
        return
    count, most = group.settings.count, group.most_nodes
    if not most:
        yield at("count").breach(
            "count and max_count allow no node: Karpenter would never start one.",
            beside(max_count=1).noting("or as many nodes as it may start"),
        )
    elif count and most > count:
        yield at("max_count").breach(
            f"{count} fixed nodes and up to {most} for jobs are two pools: one pool of Karpenter has a fixed "
            "size, or grows from zero.",
            (beside(count=0) | drop()).noting(
                f"without max_count, a second group can have max_count: {most - count}"
            ),
        )


@EKS.warning(53, f"{DOCUMENTATION}, Settings: StaticCapacity is alpha and off by default", DATE)
def karpenter_static_nodes(karpenter: Karpenter, cluster: Cluster) -> Breaches:
    """Nodes that always run belong to a managed node group."""
    for path, group in _groups(karpenter, cluster):
        if count := group.settings.count:
            yield at(*path).breach(
                f"`{group.name}` has {count} fixed nodes, which require a feature of Karpenter that is "
                "alpha; a newer image reaches a node only when its NodeClaim is deleted.",
                _left_to_eks(karpenter).noting("a managed node group keeps nodes, too"),
            )


@EKS.error(54, f"{CLASSES} (networkInterfaces, cpuOptions, capacityReservationSelectorTerms)", DATE)
def karpenter_settings(group: Group) -> Breaches:
    """A group of Karpenter uses no setting that Karpenter lacks."""
    if not group.by_karpenter:
        return
    if group.settings.threads_per_core:
        yield at("threads_per_core").breach("Karpenter cannot turn multithreading on or off.", drop())
    if group.settings.efa_interface == "efa":
        yield at("efa_interface").breach(
            "Karpenter's node classes take only interfaces of kind `interface` and `efa-only`.",
            write("efa-only"),
        )
    if isinstance(group.capacity, Reservation) and group.capacity.resource_group_arn:
        yield at("capacity", "resource_group_arn").breach(
            "Karpenter selects reservations by id or tags, never by resource group, and uses none "
            "that is not selected.",
            ask("fact", "id: cr-..."),
        )


@EKS.error(55, f"{DOCUMENTATION}, Getting Started: private clusters", DATE)
def karpenter_needs_sqs_endpoint(network: Network, _: Karpenter) -> Breaches:
    """Karpenter in a closed network has an endpoint for SQS."""
    endpoints_made = network.vpc is None or network.vpc.create_endpoints
    if network.egress == "closed" and endpoints_made and "sqs" not in network.extra_endpoints:
        yield at().breach(
            "egress is `closed` and there is no endpoint for Amazon SQS, where Karpenter learns that nodes "
            "are about to end.",
            inside(extra_endpoints=[*network.extra_endpoints, "sqs"]),
        )


@EKS.warning(
    56,
    "aws/karpenter-provider-aws#9489 (release 1.14.0; which one fixes it is not published)",
    "2026-11-22",
    by_hand="kubectl get nodeclaims; kubectl describe ec2nodeclass <group>",
)
def karpenter_reserved_efa(karpenter: Karpenter, cluster: Cluster) -> Breaches:
    """Karpenter finds reserved capacity for nodes with EFA."""
    for path, group in _groups(karpenter, cluster):
        reserved = group.capacity.kind in ("reservation", "capacity-block")
        if reserved and group.type and group.type.efa_interfaces:
            yield at(*path).breach(
                f"`{group.name}` has reserved capacity and EFA interfaces: Karpenter was seen to treat such "
                "capacity as unavailable, so that pods wait and no log says why.",
                _left_to_eks(karpenter).noting(
                    "a managed node group takes reserved capacity; or acknowledge this once it works"
                ),
            )


def _groups(karpenter: Karpenter, cluster: Cluster) -> Iterator[tuple[YamlPath, Group]]:
    """Karpenter's groups that exist, and where each is named."""
    for index, name in enumerate(karpenter.groups):
        if group := cluster.groups.get(name):
            yield ("groups", index), group


def _left_to_eks(karpenter: Karpenter) -> Remedy:
    """The group is named no more; with the last one Karpenter goes."""
    return drop() if len(karpenter.groups) > 1 else anywhere({("orchestrator", "karpenter"): DROP})
