"""Rules on EKS."""

from ultracluster.rules.eks import (
    claims,
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
    serving,
    sharing,
    system,
)

__all__ = [
    "claims",
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
    "serving",
    "sharing",
    "system",
]
