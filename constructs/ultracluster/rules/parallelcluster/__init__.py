"""Rules on ParallelCluster."""

from ultracluster.rules.parallelcluster import (
    capacity,
    cluster,
    directory,
    governance,
    groups,
    health_checks,
    pools,
    slurm,
    steps,
    topology,
    types,
)

__all__ = [
    "capacity",
    "cluster",
    "directory",
    "governance",
    "groups",
    "health_checks",
    "pools",
    "slurm",
    "steps",
    "topology",
    "types",
]
