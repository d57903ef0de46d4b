"""Rules on HyperPod."""

from ultracluster.rules.hyperpod import (
    eks,
    eks_groups,
    groups,
    patching,
    restricted,
    slurm,
    slurm_groups,
    types,
    zones,
)

__all__ = [
    "eks",
    "eks_groups",
    "groups",
    "patching",
    "restricted",
    "slurm",
    "slurm_groups",
    "types",
    "zones",
]
