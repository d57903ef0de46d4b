"""Rules on ParallelCluster."""

from ultracluster.rules.parallelcluster import capacity, cluster, directory, groups, slurm, types

__all__ = ["capacity", "cluster", "directory", "groups", "slurm", "types"]
