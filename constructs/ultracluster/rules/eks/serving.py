"""Rules on model servers as plain objects of Kubernetes: GPUs, nodes, fabric, how long they last."""

from __future__ import annotations

from ultracluster.config.kubernetes import Eks, HyperPodEks, Serving
from ultracluster.config.remedy import DROP, Remedy, ask, relative, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import EKS
from ultracluster.rules.sources import CAPACITY_BLOCKS

LWS = "kubernetes-sigs/lws v0.10.0, docs: a replica over several nodes is a LeaderWorkerSet"
NIXL = "vLLM documentation, NixlConnector Usage Guide; SGLang documentation, PD Disaggregation"
PLUGIN = "NVIDIA/k8s-device-plugin v0.20.0, README: pods request nvidia.com/gpu"
_DATE = "2026-11-23"


@EKS.error(70, PLUGIN, _DATE)
def serving_groups(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """Groups that serve models are compute groups with NVIDIA GPUs."""
    if settings.serving is None:
        return
    groups = cluster.with_role("compute")
    for index, name in enumerate(settings.serving.groups):
        place = ("orchestrator", "serving", "groups", index)
        group = groups.get(name)
        if group is None:
            yield Breach(place, f"there is no compute group `{name}`.", _other(cluster))
        elif group.restricted:
            yield at(*place).breach(
                f"`{name}` is restricted: only AWS's own images for Nova run there.", _other(cluster)
            )
        elif any(not _nvidia(known.name, group) for known in group.known_types):
            yield at(*place).breach(
                f"`{name}` has {group.settings.instance_type}, and servers of vLLM and SGLang are written "
                "for NVIDIA GPUs.",
                _other(cluster),
            )


@EKS.error(71, LWS, _DATE)
def serving_over_nodes(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """A replica over several nodes has the LeaderWorkerSet that keeps them together."""
    serving = settings.serving
    if serving and serving.over_nodes and not settings.leader_worker_set:
        yield at("orchestrator", "serving", "over_nodes").breach(
            "the pods of one replica are a LeaderWorkerSet, which is not installed: `leader_worker_set` is "
            "off.",
            relative({("leader_worker_set",): True}, up=2) | write(False),
        )


@EKS.error(72, NIXL, _DATE)
def disaggregated_serving_needs_efa(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """Prefill and decode are apart only where caches can go over EFA."""
    serving = settings.serving
    if serving is None or not serving.disaggregated:
        return
    place = ("orchestrator", "serving", "disaggregated")
    found = [(name, cluster.with_role("compute").get(name)) for name in serving.groups]
    for name, group in found:
        kind = group.type if group else None
        if kind and not kind.least_efa_interfaces:
            yield at(*place).breach(
                f"{kind.name} of `{name}` has no EFA: a cache would go over TCP, which takes longer than to "
                "work it out again.",
                write(False),
            )
    nodes = sum(group.most_nodes for _, group in found if group)
    if all(group for _, group in found) and nodes < 2:
        yield at(*place).breach(
            f"prefill and decode have nodes of their own, and these groups have {nodes} together.",
            write(False).noting("or another node"),
        )


@EKS.warning(
    73,
    f"Amazon {CAPACITY_BLOCKS}; SageMaker Developer Guide, HyperPod training "
    "plans: instances are ended when the time is over",
    _DATE,
)
def serving_outlives_reservation(cluster: Cluster, serving: Serving) -> Breaches:
    """A service does not end with a reservation."""
    for index, name in enumerate(serving.groups):
        group = cluster.with_role("compute").get(name)
        if group and group.capacity.kind in ("capacity-block", "training-plan"):
            yield at("orchestrator", "serving", "groups", index).breach(
                f"`{name}` has its nodes for a time only ({group.capacity.kind}): what is served on them "
                "ends with it.",
                _lasting(cluster).noting("or acknowledge that the service may end then"),
            )


@EKS.error(74, PLUGIN, _DATE)
def serving_gpus_requestable(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """GPUs are a resource that model servers can request."""
    if settings.serving and settings.gpu_plugin == "none":
        yield at("orchestrator", "gpu_plugin").breach(
            "nothing makes GPUs a resource of Kubernetes, and model servers request them: their pods would "
            "wait forever.",
            write("device-plugin", "gpu-operator"),
        )


def _nvidia(name: str, group: Group) -> bool:
    return any(
        known.name == name and known.accelerator is not None and known.accelerator.manufacturer == "NVIDIA"
        for known in group.known_types
    )


def _serves(group: Group) -> bool:
    nvidia = group.known_types and all(_nvidia(known.name, group) for known in group.known_types)
    return bool(nvidia) and not group.restricted


def _other(cluster: Cluster) -> Remedy:
    for name, group in cluster.with_role("compute").items():
        if _serves(group):
            return write(name)
    # without `serving` nothing of it is left to judge
    return relative({("serving",): DROP}, up=3).noting("or add a compute group with NVIDIA GPUs")


def _lasting(cluster: Cluster) -> Remedy:
    for name, group in cluster.with_role("compute").items():
        lasts = group.capacity.kind not in ("capacity-block", "training-plan")
        if lasts and _serves(group):
            return write(name)
    return ask("decision", "a group of another kind of capacity for models")
