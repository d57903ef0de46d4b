"""Rules on: Kubernetes on EKS. Room for pods on system nodes, and for groups in a template."""

from __future__ import annotations

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.eks import system_pods
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import Remedy, ask, inside
from ultracluster.model import Cluster, Group
from ultracluster.model.devices import compute_domain_types
from ultracluster.model.observability import collects, observability_of
from ultracluster.model.team_shares import scheduler_of
from ultracluster.rules.eks.groups import EKS_ONLY
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

GROUPS_THAT_FIT = 100
"""Managed groups whose template was seen to stay below 1 MB, with 33 interfaces each."""
_RESOURCES, _OF_A_GROUP, _OTHERS = 500, 2, 4  # launch template and group; role, policy, schedule, wait handle


@EKS.warning(
    30,
    "EKS User Guide, Choosing an Amazon EC2 instance type: maximum pods; catalog/system_pods.json",
    "2026-11-22",
)
def system_nodes_fit_pods(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """System nodes have room for the cluster's pods."""
    every, once = _pods(cluster, settings)
    groups = list(cluster.with_role("system").values())
    room = 0
    for group in groups:
        most = most_pods(group.type) if group.type else None
        if most is None:
            return  # unknown is not too small
        room += group.settings.count * max(0, most - every)
    if groups and once > room and groups[0].settings.count:
        yield at("node_groups", groups[0].name).breach(
            f"add-ons, schedulers and operators are about {once} pods, in addition to {every} on each node; "
            f"system nodes have addresses for {room}: pods that do not fit wait, and their add-on or chart "
            "fails.",
            _more_room(groups[0], every, once - room),
        )


@EKS.warning(
    31,
    "CloudFormation User Guide, CloudFormation quotas: template body size in an S3 object, resources",
    "2026-11-22",
    kinds=EKS_ONLY,
)
def template_fits_groups(cluster: Cluster) -> Breaches:
    """The managed node groups fit into one CloudFormation template."""
    count = len(_managed(cluster))
    if GROUPS_THAT_FIT < count <= _most_groups():
        yield at("node_groups").breach(
            f"there are {count} compute groups; the template of {GROUPS_THAT_FIT} is known to stay below "
            "CloudFormation's limit of 1 MB, that of more may not.",
            ask("decision", f"use {GROUPS_THAT_FIT} or fewer, or let Karpenter launch groups"),
        )


@EKS.error(
    32,
    "CloudFormation User Guide, CloudFormation quotas: resources in a template",
    "2026-11-22",
    kinds=EKS_ONLY,
)
def stack_fits_groups(cluster: Cluster) -> Breaches:
    """The managed node groups do not exceed the resources of a stack."""
    count = len(_managed(cluster))
    if count > _most_groups():
        yield at("node_groups").breach(
            f"{count} compute groups are {_OF_A_GROUP * count + _OTHERS} resources or more; a stack may have "
            f"{_RESOURCES}.",
            ask("decision", f"use {GROUPS_THAT_FIT} or fewer, or let Karpenter launch groups"),
        )


def most_pods(kind: InstanceType) -> int | None:
    """Pods that EKS lets run on a node of a type: by its addresses, and at most 110 or 250."""
    if kind.network_interfaces is None or kind.ipv4_per_interface is None:
        return None
    cap = 110 if kind.vcpu < 30 else 250
    return min(cap, kind.network_interfaces * (kind.ipv4_per_interface - 1) + 2)


def _managed(cluster: Cluster) -> list[str]:
    return [name for name, group in cluster.with_role("compute").items() if not group.by_karpenter]


def _most_groups() -> int:
    return (_RESOURCES - _OTHERS) // _OF_A_GROUP


def _pods(cluster: Cluster, settings: Eks | HyperPodEks) -> tuple[int, int]:
    """Pods on every node, and pods that run once in the cluster."""
    has = {"always", scheduler_of(cluster), *(key for key, value in settings if value)}
    if cluster.lustre or "inference" in has:
        has.add("lustre")
    if has & {"inference", "mountpoint_s3"}:
        has.add("s3")
    wanted = observability_of(cluster)
    if wanted and collects(cluster):
        has |= {"metrics", *(["metrics-agent"] if wanted.collector == "agent" else ())}
    if settings.gpu_plugin == "gpu-operator":
        has.add("gpu-operator")
    if compute_domain_types(cluster):
        has |= {"domains", *(["discovery"] if settings.gpu_plugin == "device-plugin" else ())}
    if has & {"training_operator", "inference", "spaces"}:
        has.add("cert-manager")
    table = system_pods()
    return (
        sum(when in has for when in table["on_every_node"].values()),
        sum(count for count, when in table["once"].values() if when in has),
    )


def _more_room(group: Group, every: int, lacking: int) -> Remedy:
    """A larger type where the nodes are as many as they should be, else more nodes of it."""
    count = group.settings.count
    large = "m5.4xlarge" if group.settings.instance_type == "m5.2xlarge" else "m5.2xlarge"
    here = count * max(0, ((most_pods(group.type) if group.type else None) or 0) - every)
    each = (most_pods(instance_types()[large]) or every + 1) - every
    nodes = max(count, -(-(here + lacking) // each))
    return inside(instance_type=large, count=nodes) if nodes > count else inside(instance_type=large)
