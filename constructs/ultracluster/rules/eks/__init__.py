"""Rules on EKS."""

from ultracluster.rules.eks import (
    cluster,
    devices,
    groups,
    isolation,
    karpenter,
    labels,
    network,
    neuron,
    pods,
    releases,
    sharing,
    system,
)

__all__ = [
    "cluster",
    "devices",
    "groups",
    "isolation",
    "karpenter",
    "labels",
    "network",
    "neuron",
    "pods",
    "releases",
    "sharing",
    "system",
]
