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
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
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
        "HPE070",
        {KIND: ["elastic"], f"{ASKED}.training_operator": False, PERCENT: ...},
        KIND,
        "which is off",
        "training_operator: true",
        {f"{ASKED}.training_operator": True},
    ),
    _case(
        "HPE071",
        {KIND: ["checkpointless"], VERSIONS: {OPERATOR: "v1.1.9-eksbuild.1"}},
        f"{VERSIONS}.{OPERATOR}",
        "checkpointless training requires v1.2.0",
        "remove",
        {VERSIONS: {OPERATOR: "v1.2.0-eksbuild.1"}},
    ),
    _case(
        "HPE072",
        {KIND: ["checkpointless", "elastic"]},
        KIND,
        "does not support managed tiered checkpoints",
        "remove tiered_checkpoints_percent",
        {KIND: ["checkpointless"]},
    ),
    _case(
        "HPE073",
        {KIND: ["elastic"], PERCENT: ..., **SPOT},
        f"{TRAIN}.capacity",
        "does not support Spot",
        "kind: on-demand",
        {f"{TRAIN}.capacity": ON_DEMAND},
    ),
    _case(
        "HPE074",
        {f"{ASKED}.task_governance": True, VERSIONS: {GOVERNANCE: "v1.2.9-eksbuild.1"}},
        f"{VERSIONS}.{GOVERNANCE}",
        "v1.3.0 or newer is required",
        "remove",
        {VERSIONS: {GOVERNANCE: "v1.3.0-eksbuild.1"}},
    ),
    _case(
        "HPE075",
        {KIND: ["checkpointless"], f"{ASKED}.scheduler": "kai"},
        f"{ASKED}.scheduler",
        "not kai",
        "kueue",
        {f"{ASKED}.scheduler": "kueue"},
    ),
    _case(
        "HPE076",
        {KIND: ["checkpointless"], "storage.lustre": ...},
        KIND,
        "no shared file system",
        "storage.lustre",
        {KIND: []},
    ),
    _case(
        "HPE077",
        {KIND: ["checkpointless"], f"{TRAIN}.instance_type": "trn2.48xlarge", **SPOT},
        KIND,
        "no group has NVIDIA GPUs",
        "resilience: []",
        {f"{TRAIN}.instance_type": "p5.48xlarge"},
    ),
    _case(
        "HPE078",
        {f"{TRAIN}.count": 1, f"{TRAIN}.min_count": 1},
        PERCENT,
        "there is one node",
        "checkpoint_tier",
        {TIER: BUCKET},
    ),
    _case(
        "HPE079",
        {TIER: BUCKET, PERCENT: ...},
        TIER,
        "no memory is given",
        "tiered_checkpoints_percent: 20",
        {PERCENT: 20},
    ),
    _case(
        "HPE080",
        {TIER: {"bucket": "example-logs"}, "storage.log_bucket": {"name": "example-logs"}},
        TIER,
        "holds access logs",
        "a folder apart",
        {TIER: BUCKET},
    ),
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
    _case("HPE081", {PERCENT: 100}, PERCENT, "leaves 0 GiB", "20", {PERCENT: 90}),
    _case(
        "HPE082",
        {KIND: ["checkpointless"], f"{TRAIN}.image_release": "2.0.1"},
        f"{TRAIN}.image_release",
        "this group stays on 2.0.1",
        "remove",
        {f"{TRAIN}.image_release": ...},
    ),
    _case(
        "HPE083",
        {KIND: ["elastic"], PERCENT: ..., **SCALED, **GOVERNED},
        f"{ASKED}.autoscaling",
        "without quotas",
        "team-namespaces",
        {f"{ASKED}.task_governance": False},
    ),
]
"""Each rule broken and mended."""

__all__ = ["RESILIENCE_CASES"]
