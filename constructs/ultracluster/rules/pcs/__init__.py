"""Rules on AWS PCS."""

from ultracluster.rules.pcs import cluster, governance, groups, nodes, settings

__all__ = ["cluster", "governance", "groups", "nodes", "settings"]
