"""Tiered checkpoints take a share of each HyperPod node's memory: how much, and what it leaves to pods."""

from __future__ import annotations

from ultracluster.catalog import InstanceType
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.model.cluster import Cluster


def checkpoints_percent(cluster: Cluster) -> int:
    """Share of each HyperPod node's memory; 0 without tiered checkpoints."""
    settings = cluster.kubernetes
    return (settings.tiered_checkpoints_percent or 0) if isinstance(settings, HyperPodEks) else 0


def memory_for_pods_gib(instance_type: InstanceType, percent: int) -> int:
    """GiB that one node has for everything else; 0 where its memory is not known."""
    return int(instance_type.memory_gib or 0) * (100 - percent) // 100


__all__ = ["checkpoints_percent", "memory_for_pods_gib"]
