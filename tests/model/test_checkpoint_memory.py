"""What tiered checkpoints take of a node, and what they leave."""

from __future__ import annotations

import pytest
from kubernetes_support import environment

from ultracluster.catalog import instance_type
from ultracluster.model import resolve
from ultracluster.model.checkpoint_memory import checkpoints_percent, memory_for_pods_gib

PERCENT = "orchestrator.tiered_checkpoints_percent"


@pytest.mark.parametrize(
    ("percent", "left"), [(0, 2048), (20, 1638), (25, 1536), (90, 204), (100, 0)], ids=str
)
def test_the_rest_is_the_pods(percent: int, left: int) -> None:
    p5 = instance_type("p5.48xlarge")
    assert p5
    assert memory_for_pods_gib(p5, percent) == left


@pytest.mark.parametrize(
    ("base", "changes", "percent"),
    [
        ("hyperpod-eks-p5", {}, 20),
        ("hyperpod-eks-p5", {PERCENT: 30}, 30),
        ("hyperpod-eks-p5", {PERCENT: None}, 0),
        ("eks-p5en", {}, 0),
        ("prod", {}, 0),
    ],
)
def test_only_hyperpod_on_eks_has_them(base: str, changes: dict[str, int | None], percent: int) -> None:
    assert checkpoints_percent(resolve(environment(changes, base=base))) == percent
