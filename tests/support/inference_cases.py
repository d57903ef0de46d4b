"""What breaks each rule on HyperPod's inference operator."""

from __future__ import annotations

from typing import Any

from rules_table import Case

BASE = "hyperpod-eks-p5"
ASKED = "orchestrator.inference"
VERSIONS = "orchestrator.addon_versions"
ADDON = "amazon-sagemaker-hyperpod-inference"
TRAIN = "node_groups.train"
PLAN = {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/spring"}
GB200 = {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 2, "capacity": PLAN}
ARM = {"role": "system", "instance_type": "m8g.4xlarge", "count": 2}
ROLE = "arn:aws:iam::111122223333:role/"


def _case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=BASE)


INFERENCE_CASES = [
    _case(
        "HPE095",
        {ASKED: {"kv_cache": "tiered"}, "orchestrator.tiered_checkpoints_percent": 0},
        f"{ASKED}.kv_cache",
        "no replica would find what another has computed",
        "tiered_checkpoints_percent: 20",
        {"orchestrator.tiered_checkpoints_percent": 20},
    ),
    _case(
        "HPE096",
        {ASKED: {"disaggregated_groups": ["train"]}, f"{TRAIN}.instance_type": "p4d.24xlarge"},
        f"{ASKED}.disaggregated_groups[0]",
        "the cache goes from GPU to GPU",
        "p6-b300.48xlarge",
        {f"{TRAIN}.instance_type": "p5en.48xlarge"},
    ),
    _case(
        "HPE096",
        {ASKED: {"disaggregated_groups": ["train"]}, VERSIONS: {ADDON: "v1.2.0-eksbuild.1"}},
        f"{ASKED}.disaggregated_groups",
        "serves both on one node",
        "remove",
        {VERSIONS: {ADDON: "v1.3.0-eksbuild.1"}},
    ),
    _case(
        "HPE096",
        {ASKED: {"disaggregated_groups": ["train"]}, f"{TRAIN}.count": 1, f"{TRAIN}.min_count": 1},
        f"{ASKED}.disaggregated_groups",
        "these groups have one node together",
        "another node",
        {f"{TRAIN}.count": 2},
    ),
]

__all__ = ["INFERENCE_CASES"]
