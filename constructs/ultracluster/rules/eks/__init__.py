"""Rules on EKS."""

from ultracluster.rules.eks import cluster, groups, karpenter, pods, releases, sharing, system

__all__ = ["cluster", "groups", "karpenter", "pods", "releases", "sharing", "system"]
