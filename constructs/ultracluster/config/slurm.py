"""What is said about Slurm itself, by orchestrators that let us."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ultracluster.config.base import Model

PartitionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$", max_length=63)]
SlurmSettings = dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], str | int]
"""Parameters of slurm.conf by their own names, e.g. `SlurmctldTimeout: 300`."""
PROLOG_FLAGS = "Alloc,NoHold"
"""Prologs run on all nodes of a job at its allocation, and a failed one does not hold it: for IMEX."""


class Partition(Model):
    """Settings of a Slurm partition; which groups are in it, the groups say."""

    exclusive: bool = True
    """A job gets whole nodes: training needs that, and UltraServers require it."""
    slurm_settings: SlurmSettings = {}
    """Further parameters of the partition, e.g. `MaxTime: 7-00:00:00`."""
