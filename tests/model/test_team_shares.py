"""Who schedules jobs, which accelerators there are, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.config.orchestrator import KUBERNETES, SLURM
from ultracluster.model import resolve
from ultracluster.model.team_shares import Scheduler, pools, quotas, scheduler_of

MORE = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 2}
PLAIN = {"role": "compute", "instance_type": "c5.large", "count": 1}
TASKS = {"orchestrator.task_governance": True}
KAI = {"orchestrator.scheduler": "kai"}


def team(**fields: Any) -> dict[str, Any]:
    return {"teams": {"research": fields}}


@pytest.mark.parametrize(
    ("base", "changes", "scheduler"),
    [
        ("eks-p5en", {}, "kueue"),
        ("eks-p5en", KAI, "kai"),
        ("eks-p5en", {"orchestrator.scheduler": "none"}, "none"),
        ("hyperpod-eks-p5", {}, "kueue"),
        ("hyperpod-eks-p5", TASKS, "task-governance"),
        ("prod", {}, "slurm"),
        ("pcs-p6-b200", {}, "slurm"),
        ("parallelcluster-p5", {}, "slurm"),
    ],
)
def test_who_schedules(base: str, changes: dict[str, Any], scheduler: Scheduler) -> None:
    environment = loaded(changed(environment_data(base), changes)).environment

    assert scheduler_of(resolve(environment)) == scheduler
    assert environment.orchestrator.kind in (SLURM if scheduler == "slurm" else KUBERNETES)


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("eks-p5en", {}, {"train": ("nvidia.com/gpu", 64)}),
        ("eks-p5en", {"node_groups.train.max_count": 16}, {"train": ("nvidia.com/gpu", 128)}),
        ("eks-p5en", {"node_groups.cpu": PLAIN}, {"train": ("nvidia.com/gpu", 64)}),
        ("eks-trn2", {}, {"trn2": ("aws.amazon.com/neuron", 16 * 4)}),
        (
            "hyperpod-eks-p5",
            {"node_groups.train.mig_profile": "1g.10gb", "orchestrator.gpu_plugin": "gpu-operator"},
            {"train": ("nvidia.com/mig-1g.10gb", 4 * 8 * 7)},
        ),
        (
            "hyperpod-eks-p5",
            {"node_groups.train.count": 0, "orchestrator.autoscaling": {"max_nodes": 6}},
            {"train": ("nvidia.com/gpu", 48)},
        ),
        ("eks-p5en", {"node_groups.train.gpu_time_slices": 4}, {"train": ("nvidia.com/gpu.shared", 256)}),
        (
            "hyperpod-eks-p5",
            {"node_groups.train.instance_types": ["p5.4xlarge"]},
            {"train": ("nvidia.com/gpu", 4)},
        ),
    ],
)
def test_accelerators_are_counted_as_kubernetes_counts_them(
    base: str, changes: dict[str, Any], expected: dict[str, tuple[str, int]]
) -> None:
    environment = loaded(changed(environment_data(base), changes)).environment

    assert {pool.group: (pool.resource, pool.total) for pool in pools(resolve(environment))} == expected


def test_totals_take_what_quotas_by_group_leave() -> None:
    teams = {"research": {"quota": 68}, "product": {"quota": {"train": 4, "more": 0}}}
    environment = loaded(
        changed(environment_data("eks-p5en"), {"node_groups.more": MORE, "teams": teams})
    ).environment

    assert quotas(resolve(environment)) == {"research": {"train": 60, "more": 8}, "product": {"train": 4}}


@pytest.mark.parametrize("quota", [65, {"train": 65}, {"trian": 1}])
def test_what_is_not_there_is_not_given(quota: Any) -> None:
    environment = loaded(changed(environment_data("eks-p5en"), team(quota=quota))).environment

    with pytest.raises(ValueError, match="accelerators"):
        quotas(resolve(environment))
