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
        "EKS072",
        {f"{SERVING}.disaggregated": True, f"{SERVE}.count": 1},
        f"{SERVING}.disaggregated",
        "these groups have 1 together",
        "another node",
        {f"{SERVE}.count": 2},
    ),
]

__all__ = ["SERVING_CASES"]
