"""Devices that pods of Kubernetes claim (Dynamic Resource Allocation) instead of counting them."""

from __future__ import annotations

from ultracluster.catalog import InstanceType
from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.model.cluster import Cluster, Group


def imex_groups(cluster: Cluster) -> dict[str, Group]:
    """Compute groups whose nodes NVLink can join to other nodes, by name."""
    return {
        name: group
        for name, group in cluster.with_role("compute").items()
        if any(known.imex for known in group.known_types)
    }


def compute_domain_types(cluster: Cluster) -> tuple[InstanceType, ...]:
    """Types whose nodes NVIDIA's DRA driver joins, each once; empty where it is off, or joins nothing."""
    if cluster.kubernetes is None or not cluster.kubernetes.compute_domains:
        return ()
    types = [known for group in imex_groups(cluster).values() for known in group.known_types if known.imex]
    return tuple({known.name: known for known in types}.values())


def has_compute_domains(cluster: Cluster, instance_type: InstanceType) -> bool:
    """Whether a job on nodes of the type gets a ComputeDomain."""
    return instance_type.name in {known.name for known in compute_domain_types(cluster)}


def claims_efa(cluster: Cluster) -> bool:
    """Whether pods claim EFA interfaces of AWS's DRA driver, instead of counting those of the plugin."""
    return isinstance(cluster.kubernetes, Eks) and cluster.kubernetes.efa_devices == "dra"


def spaces_of(cluster: Cluster) -> HyperPodSpaces | None:
    """Notebooks and editors that people have on the cluster."""
    return cluster.kubernetes.spaces if isinstance(cluster.kubernetes, HyperPodEks) else None


def claims_devices(cluster: Cluster) -> bool:
    """Whether pods of jobs name claims at all."""
    return claims_efa(cluster) or bool(compute_domain_types(cluster))


__all__ = [
    "claims_devices",
    "claims_efa",
    "compute_domain_types",
    "has_compute_domains",
    "imex_groups",
    "spaces_of",
]
