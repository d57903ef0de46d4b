"""Rules on HyperPod, with Slurm and on EKS alike, each broken and mended."""

from __future__ import annotations

import json
import re
from typing import Any

from rules_table import Case, found, table_tests

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


def groups(count: int) -> dict[str, Any]:
    """So many groups in all; three are there."""
    return {f"node_groups.more{number}": GPU for number in range(count - 3)}


def patching(schedule: str) -> dict[str, str]:
    return {"kind": "scheduled", "schedule": schedule}


CASES = [
    Case(
        "HYP010",
        groups(101),
        "node_groups",
        "101 groups; the API takes 100",
        "fewer groups",
        {"node_groups.more0": ...},
    ),
    Case(
        "HYP011",
        groups(21),
        "node_groups",
        "21 groups",
        "20 groups or fewer",
        {"node_groups.more0": ...},
    ),
    Case(
        "HYP012",
        {"node_groups.gpu.min_count": 3},
        "node_groups.gpu.min_count",
        "at least 3 nodes, but `count` is 2",
        "2",
        {"node_groups.gpu.min_count": 2},
    ),
    Case(
        "HYP013",
        {**CLASSIC, "node_groups.gpu.min_count": 2},
        "node_groups.gpu.min_count",
        "always all or nothing",
        "remove min_count",
        {"node_groups.gpu.min_count": ...},
    ),
    Case(
        "HYP014",
        {"node_groups.gpu.min_count": 0},
        "node_groups.gpu.min_count",
        "a minimum of 0",
        "remove min_count, or min_count: 2",
        {"node_groups.gpu.min_count": 1},
    ),
    Case(
        "HYP020",
        {"node_groups.gpu.capacity": {"kind": "reservation", "id": "cr-0123456789abcdef0"}},
        "node_groups.gpu.capacity",
        "matched only by account and zone id",
        "onboarded in usw2-az2",
        {"node_groups.gpu.capacity": {"kind": "on-demand"}},
    ),
    Case(
        "HYP021",
        {"node_groups.gpu.capacity": {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}},
        "node_groups.gpu.capacity",
        "cr-0123456789abcdef0 cannot be used",
        "kind: training-plan",
        {"node_groups.gpu.capacity": PLAN},
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
        "HYP024",
        {TYPE: "p6e-gb200.36xlarge", "node_groups.gpu.capacity": SPOT},
        "node_groups.gpu.capacity",
        "does not list p6e-gb200.36xlarge for Spot",
        "kind: training-plan",
        {"node_groups.gpu.capacity": PLAN},
    ),
    Case(
        "HYP025",
        {"node_groups.login.capacity": PLAN},
        "node_groups.login.capacity",
        "on a login group",
        "on-demand",
        {"node_groups.login.capacity": ...},
    ),
    Case(
        "HYP026",
        {"node_groups.gpu.capacity": PLAN},
        TYPE,
        "no training plan for g6e.12xlarge, only for p4d",
        "capacity: {kind: on-demand}",
        {TYPE: "p5.48xlarge"},
    ),
    Case(
        "HYP040",
        {TYPE: "inf2.48xlarge"},
        TYPE,
        "refuses ml.inf2.48xlarge",
        "48xlarge",
        {TYPE: "trn2.48xlarge"},
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
        "HYP047",
        {"node_groups.trn2.deep_health_checks": ["instance-stress"]},
        "node_groups.trn2.deep_health_checks",
        "checks of GPUs only, and trn2.48xlarge has Trainium2",
        "remove deep_health_checks",
        {"node_groups.trn2.deep_health_checks": []},
        base="trainium",
    ),
    Case(
        "HYP048",
        {
            "node_groups.gpu.count": 1,
            "node_groups.gpu.deep_health_checks": ["instance-stress", "instance-connectivity"],
        },
        "node_groups.gpu.deep_health_checks[1]",
        "the group has 1",
        "node_groups.gpu.count: 2, or remove it",
        {"node_groups.gpu.count": 2},
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
        "HYP049",
        {"node_groups.gpu.image": IMAGE},
        "node_groups.gpu.image",
        "AWS contradicts itself",
        "remove image",
        {"node_groups.gpu.image": ...},
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
        "HYP051",
        {"node_groups.gpu.image": IMAGE, "node_groups.gpu.patching": {"kind": "when-idle"}},
        "node_groups.gpu.patching",
        "may replace that image",
        "remove patching",
        {"node_groups.gpu.image": ...},
    ),
    Case(
        "HYP052",
        {"node_groups.gpu.volume_gib": 1025},
        "node_groups.gpu.volume_gib",
        "1025 GiB per node",
        "1024",
        {"node_groups.gpu.volume_gib": 1024},
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
        "HYP053",
        {"node_groups.gpu.patching": patching("cron(0 3 * * SUN)")},
        "node_groups.gpu.patching.schedule",
        "5 fields instead of six",
        "cron(0 3 ? * SUN *)",
        {"node_groups.gpu.patching": {"kind": "when-all-idle"}},
    ),
    Case(
        "HYP058",
        {"node_groups.gpu.image_release": "2.1.0", "node_groups.gpu.image": "ami-0123456789abcdef0"},
        "node_groups.gpu.image_release",
        "2.1.0 is a release of HyperPod's image, and ami-0123456789abcdef0 is another image",
        "remove image_release, or remove image",
        {"node_groups.gpu.image": ...},
    ),
    Case(
        "HYP059",
        {"node_groups.gpu.image_release": "2.1.0"},
        "node_groups.gpu.image_release",
        "2.1.0 with Slurm",
        "acknowledge this",
        {"node_groups.gpu.image_release": ...},
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
        "HyperPod's EKS image of August 2025 or later for Kubernetes 1.36",
        "remove image",
        {f"{TRAIN}.image": ...},
        base="hyperpod-eks-p5",
    ),
]

test_breaks, test_mended, test_advice_works, test_every_rule_is_broken_once = table_tests(HYP, cases=CASES)


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
