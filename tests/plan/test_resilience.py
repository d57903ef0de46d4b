"""Resilient training in a plan: the operator, and what memory checkpoints leave."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.plan.resilience import resilience_lines, resilience_plan

BASE = "hyperpod-eks-p5"
ASKED = "orchestrator"


def lines(changes: dict[str, Any]) -> list[str]:
    plan = resilience_plan(resolve(environment(changes, base=BASE)))
    return list(resilience_lines(plan)) if plan else []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "train: checkpoints take 410 GiB of each node, 1,638 GiB are left to pods"),
        ({f"{ASKED}.resilience": ["checkpointless"]}, "not the job; checkpointless jobs"),
        (
            {f"{ASKED}.addon_versions": {"amazon-sagemaker-hyperpod-training-operator": "v1.2.9-eksbuild.1"}},
            "training operator v1.2.9-eksbuild.1",
        ),
        (
            {f"{ASKED}.checkpoint_tier": {"bucket": "example-runs", "prefix": "a/"}},
            "checkpoints are kept in s3://example-runs/a/, by namespace",
        ),
    ],
)
def test_a_plan_says(changes: dict[str, Any], said: str) -> None:
    assert any(said in line for line in lines(changes))


def test_what_is_not_there_is_not_said() -> None:
    without = {f"{ASKED}.training_operator": False, f"{ASKED}.tiered_checkpoints_percent": None}

    assert lines(without) == []
    assert resilience_plan(resolve(environment({}))) is None
    assert all("checkpoints" not in one for one in lines({f"{ASKED}.tiered_checkpoints_percent": None}))
