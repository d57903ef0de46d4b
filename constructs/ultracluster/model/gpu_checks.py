"""ParallelCluster's own test of GPUs before jobs: on which nodes, and how long it may take."""

from __future__ import annotations

from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model.cluster import Cluster

GPU_CHECK_SECONDS = 900
"""Seconds that the test may take: 180 are typical with eight A100, more with more memory (ParallelCluster
User Guide, HealthChecks)."""


def checks_gpus(cluster: Cluster) -> bool:
    """Whether ParallelCluster tests GPUs before jobs on the nodes of a group."""
    settings = cluster.settings
    if not isinstance(settings, ParallelCluster):
        return False
    return any(
        settings.partitions[queue].checks_gpus(name)
        for queue, groups in cluster.partitions.items()
        if queue in settings.partitions
        for name in groups
    )


__all__ = ["GPU_CHECK_SECONDS", "checks_gpus"]
