"""Schedulers that share accelerators among teams: their names, what they count, and where it was read."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.model.team_shares import Scheduler

DATE = "2026-11-21"
KUEUE = "Kueue 0.19.2, kueue.x-k8s.io/v1beta2"
VOLCANO = "Volcano 1.15.1, capacity plugin"
KAI = "KAI Scheduler 0.17.0, scheduling.run.ai/v2"
GOVERNANCE = "SageMaker API reference, CreateComputeQuota"
SACCTMGR = "sacctmgr manual (Slurm 22.05 to 25.11)"

TITLES: Mapping[Scheduler, str] = {
    "kueue": "Kueue",
    "volcano": "Volcano",
    "kai": "KAI",
    "task-governance": "HyperPod's task governance",
    "slurm": "Slurm",
    "none": "no scheduler",
}

BY_GROUP: frozenset[Scheduler] = frozenset({"kueue", "task-governance"})
"""Schedulers that count accelerators by node group (or by instance type), and not only in total."""
