"""Rules on ParallelCluster."""

from ultracluster.rules.parallelcluster import capacity, cluster, groups, slurm

__all__ = ["capacity", "cluster", "groups", "slurm"]
