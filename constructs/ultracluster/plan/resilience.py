"""Resilient training in figures: which kinds, by which operator, and what memory checkpoints take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.catalog.hyperpod_eks import hyperpod_addon_version
from ultracluster.config.kubernetes import HyperPodAddon, HyperPodEks
from ultracluster.model import Cluster
from ultracluster.model.checkpoint_memory import checkpoints_percent, memory_for_pods_gib

_OPERATOR: HyperPodAddon = "amazon-sagemaker-hyperpod-training-operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMemory:
    """The memory of one node of a group."""

    group: str
    checkpoints_gib: int
    """GiB that tiered checkpoints take."""
    pods_gib: int
    """GiB that are left to everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResiliencePlan:
    """What becomes of jobs when processes or nodes fail."""

    operator: str
    """Version of HyperPod's training operator; empty without it."""
    kinds: tuple[str, ...]
    """Kinds that are prepared, besides restarted processes."""
    checkpoints_percent: int
    """Share of each node's memory that holds checkpoints; 0 without tiered checkpoints."""
    checkpoint_tier: str
    """Folder of S3 in which they outlast the memory; empty without one."""
    memory: tuple[CheckpointMemory, ...]
    """By group; nothing for groups whose memory is not known."""


def resilience_plan(cluster: Cluster) -> ResiliencePlan | None:
    """None where HyperPod runs nothing of it."""
    settings = cluster.kubernetes
    if not isinstance(settings, HyperPodEks):
        return None
    percent = checkpoints_percent(cluster)
    if not (settings.training_operator or percent):
        return None
    version = settings.addon_versions.get(_OPERATOR) or hyperpod_addon_version(_OPERATOR)
    tier = settings.checkpoint_tier
    return ResiliencePlan(
        operator=version if settings.training_operator else "",
        kinds=tuple(settings.resilience),
        checkpoints_percent=percent,
        checkpoint_tier=f"s3://{tier.bucket}/{tier.prefix.rstrip('/')}/" if tier else "",
        memory=tuple(_memory(cluster, percent)) if percent else (),
    )


def _memory(cluster: Cluster, percent: int) -> Iterator[CheckpointMemory]:
    for name, group in cluster.with_role("compute").items():
        if group.type and group.type.memory_gib:
            left = memory_for_pods_gib(group.type, percent)
            yield CheckpointMemory(
                group=name, checkpoints_gib=int(group.type.memory_gib) - left, pods_gib=left
            )


def resilience_lines(plan: ResiliencePlan) -> Iterator[str]:
    """In words, a line for each fact."""
    if plan.operator:
        more = f"; {' and '.join(plan.kinds)} jobs" if plan.kinds else ""
        yield f"training operator {plan.operator}: restarts processes of a job, not the job{more}"
    for one in plan.memory:
        yield (
            f"{one.group}: checkpoints take {one.checkpoints_gib:,} GiB of each node, "
            f"{one.pods_gib:,} GiB are left to pods"
        )
    if plan.checkpoint_tier:
        yield f"checkpoints are kept in {plan.checkpoint_tier}, by namespace"


__all__ = ["CheckpointMemory", "ResiliencePlan", "resilience_lines", "resilience_plan"]
