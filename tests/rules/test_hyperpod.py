"""Rules on HyperPod, with Slurm and on EKS alike, each broken and mended."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from recipes import NEW_TYPE, types_with_the_new_one
from rules_table import Case, found, table_tests, world_tests

from ultracluster.catalog import instances
from ultracluster.rules.sets import HYP

GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "gpu"}
CLASSIC = {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}
IMAGE = "ami-0123456789abcdef0"
PLAN = {
    "kind": "training-plan",
    "arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/spring",
}
SPOT = {"kind": "spot"}
TYPE, TRAIN, SYSTEM = "node_groups.gpu.instance_type", "node_groups.train", "node_groups.system"
FLEXIBLE = {f"{TRAIN}.instance_type": "g6e.24xlarge", f"{TRAIN}.capacity": {"kind": "on-demand"}}


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a type of which it is unknown whether HyperPod has it."""
    types = types_with_the_new_one()
    monkeypatch.setattr(instances, "instance_types", lambda: types)


def groups(count: int) -> dict[str, Any]:
    """So many groups in all; three are there."""
    return {f"node_groups.more{number}": GPU for number in range(count - 3)}


def patching(schedule: str) -> dict[str, str]:
    return {"kind": "scheduled", "schedule": schedule}


CASES = [
    Case(
        "HYP097",
        {TYPE: NEW_TYPE},
        TYPE,
        f"unknown whether HyperPod has ml.{NEW_TYPE}",
        "48xlarge",
        {TYPE: "p6-b300.48xlarge"},
    ),
    Case(
        "HYP022",
        {**CLASSIC, "node_groups.gpu.capacity": SPOT},
        "node_groups.gpu.capacity",
        "refuses Spot",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous"},
    ),
    Case(
        "HYP040",
        {TYPE: "trn2u.48xlarge"},
        TYPE,
        "refuses ml.trn2u.48xlarge",
        "trn2.48xlarge",
        {TYPE: "trn2.48xlarge"},
    ),
    Case(
        "HYP041",
        {"region": "eu-south-2", "network.zone_id": "eus2-az1", TYPE: "p5.48xlarge"},
        TYPE,
        "no price is published for ml.p5.48xlarge in eu-south-2",
        "region: eu-",
        {"region": "us-west-2"},
    ),
    Case(
        "HYP047",
        {"node_groups.login.deep_health_checks": ["instance-stress"]},
        "node_groups.login.deep_health_checks",
        "`login` is a login group",
        "remove deep_health_checks",
        {"node_groups.login.deep_health_checks": []},
    ),
    Case(
        "HYP047",
        {TYPE: "c6i.32xlarge", "node_groups.gpu.deep_health_checks": ["instance-stress"]},
        "node_groups.gpu.deep_health_checks",
        "c6i.32xlarge has no accelerators",
        "remove deep_health_checks",
        {TYPE: "p5.48xlarge"},
    ),
    Case(
        "HYP048",
        {
            "node_groups.gpu.count": 1,
            "node_groups.gpu.deep_health_checks": ["instance-connectivity"],
        },
        "node_groups.gpu.deep_health_checks[0]",
        "the group has 1",
        "node_groups.gpu.count: 2, or remove node_groups.gpu.deep_health_checks",
        {"node_groups.gpu.deep_health_checks": ["instance-stress"]},
    ),
    Case(
        "HYP050",
        {"node_groups.gpu.image": IMAGE, "node_groups.login.image": IMAGE},
        "node_groups.controller",
        "inherits the image of the oldest",
        "image: ami-",
        {"node_groups.controller.image": IMAGE},
    ),
    Case(
        "HYP050",
        {"node_groups.gpu.image": IMAGE},
        "node_groups.login",
        "inherits the image of the oldest",
        "on no group",
        CLASSIC,
    ),
    Case(
        "HYP053",
        {"node_groups.gpu.patching": patching("cron(0 3 * * SUN *)")},
        "node_groups.gpu.patching.schedule",
        "`*` is not a day of month",
        "cron(0 3 ? * SUN *)",
        {"node_groups.gpu.patching": patching("cron(0 3 ? * SUN *)")},
    ),
    Case(
        "HYP066",
        {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"},
        "orchestrator.provisioning",
        "a key of AWS's",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous", "orchestrator.slurm_config_strategy": None},
    ),
    Case(
        "HYP025",
        {f"{SYSTEM}.capacity": PLAN},
        f"{SYSTEM}.capacity",
        "on a system group",
        "on-demand",
        {f"{SYSTEM}.capacity": {"kind": "on-demand"}},
        base="hyperpod-eks-p5",
    ),
    Case(
        "HYP040",
        {**FLEXIBLE, f"{TRAIN}.instance_types": ["trn2u.48xlarge"]},
        f"{TRAIN}.instance_types[0]",
        "refuses ml.trn2u.48xlarge",
        "trn2.48xlarge",
        {f"{TRAIN}.instance_types": ["g6e.12xlarge"]},
        base="hyperpod-eks-p5",
    ),
    Case(
        "HYP049",
        {f"{TRAIN}.image": IMAGE},
        f"{TRAIN}.image",
        "HyperPod's EKS image of August 2025 or later for Kubernetes 1.35",
        "remove image",
        {f"{TRAIN}.image": ...},
        base="hyperpod-eks-p5",
    ),
]

GROUPS, NOVA = "wishes/groups", "wishes/restricted-groups"
SPOT_1, SPOT_3, SERVE = "node_groups.spot-1", "node_groups.spot-3", "node_groups.serve"
ZONES, AZ1, AZ3 = "network.further_zones", "use2-az1", "use2-az3"
VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.112.0.0/16", "nat_gateway_id": "nat-0123456789abcdef0"}
TUNE = "node_groups.tune"


def zones_case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=GROUPS)


def nova_case(
    rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=NOVA)


ZONE_CASES = [
    zones_case(
        "HYP070",
        {f"{SERVE}.zone_id": "use2-az2"},
        f"{SERVE}.zone_id",
        "the network's own zone",
        "remove zone_id",
        {f"{SERVE}.zone_id": ...},
    ),
    zones_case(
        "HYP071",
        {f"{ZONES}.use2-az2": {"cidr": "10.112.192.0/19"}},
        f"{ZONES}.use2-az2",
        "is the zone of the network itself",
        "remove",
        {f"{ZONES}.use2-az2": ...},
    ),
    zones_case(
        "HYP072",
        {"network.cidr": ..., "network.vpc": VPC, f"{ZONES}.{AZ3}.cidr": "10.113.0.0/20"},
        f"{ZONES}.{AZ3}.cidr",
        "is not part of the VPC's 10.112.0.0/16",
        "10.112.192.0/18",
        {"network.cidr": ..., "network.vpc": VPC, f"{ZONES}.{AZ3}.cidr": "10.112.192.0/18"},
    ),
    zones_case(
        "HYP072",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/30"},
        f"{ZONES}.{AZ3}.cidr",
        "EC2 makes subnets from /16 to /28",
        "10.112.160.0/19",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/19"},
    ),
]

WINDOW_CASES = [
    zones_case(
        "HYP084",
        {f"{SERVE}.patching": ...},
        SERVE,
        "other groups are pinned to a release of HyperPod's image (2.1.0)",
        "image_release",
        {f"{SERVE}.image_release": "2.1.0"},
    ),
]

NOVA_CASES = [
    nova_case(
        "HYP087",
        {f"{TUNE}.capacity": SPOT},
        f"{TUNE}.capacity",
        "no Spot capacity for a restricted group",
        "on-demand",
        {f"{TUNE}.capacity": {"kind": "on-demand"}},
    ),
    nova_case(
        "HYP088",
        {"orchestrator.restricted_lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 250}},
        f"{TUNE}.restricted.lustre",
        "this group asks for its own",
        "remove",
        {f"{TUNE}.restricted.lustre": ...},
    ),
    nova_case(
        "HYP092",
        {"orchestrator.autoscaling": {"max_nodes": 4}},
        "orchestrator.autoscaling",
        "switch Karpenter off",
        "remove autoscaling",
        {"orchestrator.autoscaling": ...},
    ),
]

test_breaks_and_is_mended, test_advice_works = table_tests(
    cases=[*CASES, *ZONE_CASES, *WINDOW_CASES, *NOVA_CASES]
)
test_the_examples_of_a_world_of_their_own = world_tests(HYP)


def test_types_that_nobody_knows_are_left_to_others() -> None:
    changes = {
        TYPE: "p99.metal",
        "node_groups.gpu.threads_per_core": 2,
        "node_groups.gpu.deep_health_checks": ["instance-stress"],
        "node_groups.gpu.capacity": SPOT,
    }
    assert found(HYP, changes) == []


def test_a_declared_type_is_taken_for_one_that_hyperpod_knows() -> None:
    declared = {
        "vcpu": 144, "memory_gib": 960, "accelerator": "Trainium3", "accelerators": 4,
        "network_gbps": 1600, "network_cards": 17, "efa_interfaces": 8, "addresses": 17,
        "source": "announcement of the type",
    }  # fmt: skip
    changes = {
        "instance_types": {"trn3.48xlarge": declared},
        TYPE: "trn3.48xlarge",
        "node_groups.gpu.capacity": PLAN,
    }
    assert found(HYP, changes) == []


def schedule_pattern() -> str:
    """The pattern in CloudFormation's own schema, as cfn-lint ships it."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    manager = PROVIDER_SCHEMA_MANAGER
    schema = manager.get_resource_schema("us-east-1", "AWS::SageMaker::Cluster").schema
    (pattern,) = re.findall(r'"pattern": "(cron[^"]*)"', json.dumps(schema))[:1]
    return json.loads(f'"{pattern}"')


def test_schedules_are_those_of_cloudformation() -> None:
    pattern = schedule_pattern()
    values = [
        ("0", "00", "59", "60", "*", "5"),
        ("3", "03", "23", "24", "*", "19"),
        ("?", "1", "09", "31", "32", "*"),
        ("*", "1", "09", "12", "13", "*/3", "*/13"),
        ("?", "SUN", "L", "2", "8", "2#1", "2#6", "3L", "*", "MON-FRI"),
        ("*", "2026", "2019", "?"),
    ]
    ordinary = ["0", "3", "?", "*", "SUN", "*"]
    for place, texts in enumerate(values):
        for text in texts:
            fields = [*ordinary[:place], text, *ordinary[place + 1 :]]
            expression = f"cron({' '.join(fields)})"
            changes = {"node_groups.gpu.patching": patching(expression)}
            refused = [one.code for one in found(HYP, changes)] == ["HYP053"]
            assert refused == (re.fullmatch(pattern, expression) is None), expression
