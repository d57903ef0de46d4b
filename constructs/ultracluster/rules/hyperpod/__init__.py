"""Rules on HyperPod."""

from ultracluster.rules.hyperpod import (
    eks,
    eks_groups,
    groups,
    inference,
    resilience,
    slurm,
    slurm_groups,
    types,
)

__all__ = ["eks", "eks_groups", "groups", "inference", "resilience", "slurm", "slurm_groups", "types"]
