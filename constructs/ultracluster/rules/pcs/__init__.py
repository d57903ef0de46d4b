"""Rules on AWS PCS."""

from ultracluster.rules.pcs import cluster, governance, gres, groups, interruptions, nodes, rest, settings

__all__ = ["cluster", "governance", "gres", "groups", "interruptions", "nodes", "rest", "settings"]
