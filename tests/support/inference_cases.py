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
CLOSED_VPC = {
    "network.vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.112.0.0/16"},
    "network.cidr": ...,
    "orchestrator.second_zone_id": ...,
    "orchestrator.control_plane_subnet_ids": ["subnet-0123456789abcdef0", "subnet-0fedcba9876543210"],
}


def _case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=BASE)


INFERENCE_CASES = [
    _case(
        "HPE090",
        {ASKED: {}, "node_groups": {"system": ARM, "train": GB200}},
        ASKED,
        "every group of the cluster is arm64",
        "a group with role: system of an x86_64 type",
        {"node_groups.system.instance_type": "m5.4xlarge"},
    ),
    _case(
        "HPE091",
        {ASKED: {}, VERSIONS: {"cert-manager": "v1.18.2-eksbuild.1"}},
        f"{VERSIONS}.cert-manager",
        "it requires v1.18.2-eksbuild.2 or newer",
        "v1.18.2-eksbuild.2",
        {VERSIONS: {"cert-manager": "v1.18.2-eksbuild.2"}},
    ),
    _case(
        "HPE092",
        {ASKED: {"execution_role_arn": f"{ROLE}operator"}},
        f"{ASKED}.execution_role_arn",
        "does not begin with SageMakerHyperPodInference",
        "remove execution_role_arn",
        {f"{ASKED}.execution_role_arn": f"{ROLE}path/SageMakerHyperPodInference-1"},
    ),
    _case(
        "HPE093",
        {
            ASKED: {
                "execution_role_arn": f"{ROLE}SageMakerHyperPodInference-1",
                "certificate_bucket": "certificates",
            }
        },
        f"{ASKED}.certificate_bucket",
        "hyperpod-tls* only",
        "remove execution_role_arn",
        {f"{ASKED}.certificate_bucket": "hyperpod-tls-1"},
    ),
    _case(
        "HPE094",
        {ASKED: {"gateway": True}, VERSIONS: {ADDON: "v1.6.0-eksbuild.1"}},
        f"{ASKED}.gateway",
        "it comes with v2.0.0-eksbuild.2",
        "gateway: false",
        {VERSIONS: {ADDON: "v2.0.0-eksbuild.2"}},
    ),
    _case(
        "HPE095",
        {ASKED: {"kv_cache": "tiered"}, "orchestrator.tiered_checkpoints_percent": ...},
        f"{ASKED}.kv_cache",
        "no replica would find what another has computed",
        "tiered_checkpoints_percent: 20",
        {"orchestrator.tiered_checkpoints_percent": 20},
    ),
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
        {ASKED: {"disaggregated_groups": ["serve"]}},
        f"{ASKED}.disaggregated_groups[0]",
        "there is no compute group `serve`",
        "train",
        {ASKED: {"disaggregated_groups": ["train"]}},
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
    _case(
        "HPE097",
        {ASKED: {}, **CLOSED_VPC},
        ASKED,
        "kubernetes.io/role/internal-elb",
        "tag private subnets of two zones",
        {f"{ASKED}.load_balancer_controller": False},
    ),
    _case(
        "HPE098",
        {ASKED: {}, "network.egress": "closed", "storage": {}},
        ASKED,
        "an endpoint has nothing to serve",
        "model_buckets",
        {f"{ASKED}.model_buckets": ["models"]},
    ),
    _case(
        "HPE099",
        {ASKED: {"kv_cache": "tiered"}, "teams": {"research": {}, "product": {}}},
        f"{ASKED}.kv_cache",
        "keeps endpoints of different teams apart by nothing",
        "kv_cache: node",
        {"teams": {"research": {}}},
    ),
    _case(
        "HPE100",
        {ASKED: {}, "network.egress": "closed"},
        ASKED,
        "imports the certificates of endpoints",
        "egress: nat",
        {"network.egress": "nat"},
    ),
]

__all__ = ["INFERENCE_CASES"]
