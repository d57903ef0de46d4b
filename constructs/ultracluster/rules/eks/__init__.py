"""Rules on EKS."""

from ultracluster.rules.eks import (
    cluster,
    devices,
    groups,
    isolation,
    karpenter,
    labels,
    network,
    pods,
    releases,
    serving,
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
    "pods",
    "releases",
    "serving",
    "sharing",
    "system",
]
