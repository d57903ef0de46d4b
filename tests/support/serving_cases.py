"""What breaks each rule on model servers as plain objects of Kubernetes."""

from __future__ import annotations

from typing import Any

from rules_table import Case

BASE = "eks-p5en"
SERVING, SERVE = "orchestrator.serving", "node_groups.serve"
GROUP = {
    "role": "compute",
    "instance_type": "p5.48xlarge",
    "count": 2,
    "capacity": {"kind": "reservation", "id": "cr-0fedcba9876543210"},
}
THERE = {SERVING: {"groups": ["serve"]}, SERVE: GROUP}


def _case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, {**THERE, **broken}, at, says, instead, mended, base=BASE)


SERVING_CASES = [
    _case(
        "EKS070",
        {SERVING: {"groups": ["models"]}},
        f"{SERVING}.groups[0]",
        "there is no compute group `models`",
        "train",
        {SERVING: {"groups": ["serve"]}},
    ),
    _case(
        "EKS070",
        {f"{SERVE}.instance_type": "trn2.48xlarge"},
        f"{SERVING}.groups[0]",
        "are written for NVIDIA GPUs",
        "train",
        {f"{SERVE}.instance_type": "p5.48xlarge"},
    ),
    Case(
        "EKS070",
        {SERVING: {"groups": ["tune"]}},
        f"{SERVING}.groups[0]",
        "`tune` is restricted",
        "add a compute group with NVIDIA GPUs",
        {
            SERVE: {"role": "compute", "instance_type": "p5.48xlarge", "count": 1},
            SERVING: {"groups": ["serve"]},
        },
        base="wishes/restricted-groups",
    ),
    _case(
        "EKS071",
        {f"{SERVING}.over_nodes": True},
        f"{SERVING}.over_nodes",
        "`leader_worker_set` is off",
        "leader_worker_set: true",
        {"orchestrator.leader_worker_set": True},
    ),
    _case(
        "EKS072",
        {f"{SERVING}.disaggregated": True, f"{SERVE}.instance_type": "g6.4xlarge"},
        f"{SERVING}.disaggregated",
        "has no EFA",
        "disaggregated: false",
        {f"{SERVE}.instance_type": "g6.12xlarge"},
    ),
    _case(
        "EKS072",
        {f"{SERVING}.disaggregated": True, f"{SERVE}.count": 1},
        f"{SERVING}.disaggregated",
        "these groups have 1 together",
        "another node",
        {f"{SERVE}.count": 2},
    ),
    _case(
        "EKS073",
        {SERVING: {"groups": ["train"]}},
        f"{SERVING}.groups[0]",
        "has its nodes for a time only (capacity-block)",
        "serve",
        {SERVING: {"groups": ["serve"]}},
    ),
    _case(
        "EKS074",
        {"orchestrator.gpu_plugin": "none"},
        "orchestrator.gpu_plugin",
        "nothing makes GPUs a resource",
        "device-plugin",
        {"orchestrator.gpu_plugin": "device-plugin"},
    ),
]

__all__ = ["SERVING_CASES"]
