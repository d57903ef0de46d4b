"""Partitions of Slurm: which compute groups are in each, and what one may be called."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup


def partitions(environment: Environment) -> dict[str, dict[str, NodeGroup]]:
    """Compute groups by partition; one that names none is a partition of its own name."""
    found: dict[str, dict[str, NodeGroup]] = {}
    for name, group in environment.groups("compute").items():
        found.setdefault(group.partition or name, {})[name] = group
    return found


def own_partition(name: str) -> str:
    """The group's name as the name of its partition, unless that means something else."""
    return name if name.lower() not in ("dev", "default") else "train"
