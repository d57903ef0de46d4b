"""Rules on ParallelCluster."""

from ultracluster.rules.parallelcluster import (
    capacity,
    cluster,
    directory,
    governance,
    groups,
    slurm,
    steps,
    types,
)

__all__ = ["capacity", "cluster", "directory", "governance", "groups", "slurm", "steps", "types"]
