"""Rules on HyperPod."""

from ultracluster.rules.hyperpod import (
    eks,
    eks_groups,
    groups,
    inference,
    patching,
    resilience,
    restricted,
    slurm,
    slurm_groups,
    spaces,
    types,
    zones,
)

__all__ = [
    "eks",
    "eks_groups",
    "groups",
    "inference",
    "patching",
    "resilience",
    "restricted",
    "slurm",
    "slurm_groups",
    "spaces",
    "types",
    "zones",
]
