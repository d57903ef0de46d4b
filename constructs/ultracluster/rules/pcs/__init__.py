"""Rules on AWS PCS."""

from ultracluster.rules.pcs import cluster, groups, nodes, settings

__all__ = ["cluster", "groups", "nodes", "settings"]
