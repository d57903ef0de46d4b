"""What breaks the rules on resilient training of HyperPod on EKS, and what mends it."""

from __future__ import annotations

from typing import Any

from rules_table import Case

BASE = "hyperpod-eks-p5"
TRAIN, ASKED = "node_groups.train", "orchestrator"
KIND = f"{ASKED}.resilience"
PERCENT, TIER = f"{ASKED}.tiered_checkpoints_percent", f"{ASKED}.checkpoint_tier"
VERSIONS = f"{ASKED}.addon_versions"
OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
BUCKET = {"bucket": "example-checkpoints"}
ON_DEMAND = {"kind": "on-demand"}
SPOT = {f"{TRAIN}.capacity": {"kind": "spot"}, f"{TRAIN}.deep_health_checks": [], f"{TRAIN}.min_count": ...}
SCALED = {
    f"{ASKED}.autoscaling": {"max_nodes": 8},
    f"{TRAIN}.count": 0,
    f"{TRAIN}.min_count": ...,
    f"{TRAIN}.capacity": ON_DEMAND,
    f"{TRAIN}.deep_health_checks": [],
}
GOVERNED = {f"{ASKED}.task_governance": True, "teams": {"research": {"quota": 8}}}


def _case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=BASE)


RESILIENCE_CASES = [
    _case(
        "HPE080",
        {
            TIER: {"bucket": "example-cluster", "prefix": "hyperpod-eks-p5/x"},
            "storage.scripts_bucket": {"name": "example-cluster"},
        },
        TIER,
        "nodes run as root",
        "a folder apart",
        {TIER: {"bucket": "example-cluster", "prefix": "checkpoints"}},
    ),
]
"""Each rule broken and mended."""

__all__ = ["RESILIENCE_CASES"]
