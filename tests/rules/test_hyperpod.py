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
        "HyperPod's EKS image of August 2025 or later for Kubernetes 1.35",
        "remove image",
        {f"{TRAIN}.image": ...},
        base="hyperpod-eks-p5",
    ),
]

GROUPS, NOVA = "wishes/groups", "wishes/restricted-groups"
SPOT_1, SPOT_3, SERVE = "node_groups.spot-1", "node_groups.spot-3", "node_groups.serve"
ZONES, AZ1, AZ3 = "network.further_zones", "use2-az1", "use2-az3"
TUNE = "node_groups.tune"
AWAY = {ZONES: {"usw2-az1": {"cidr": "10.0.128.0/19"}}, "node_groups.gpu.zone_id": "usw2-az1"}


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
        {f"{ZONES}.{AZ3}": ...},
        f"{SPOT_3}.zone_id",
        "there is no subnet in use2-az3",
        "10.112.160.0/19",
        {f"{SPOT_3}.zone_id": ...},
    ),
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
        {f"{ZONES}.use1-az1": {"cidr": "10.112.192.0/19"}},
        f"{ZONES}.use1-az1",
        "is a zone of us-east-1",
        "remove",
        {f"{ZONES}.use1-az1": ...},
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
        {f"{ZONES}.{AZ3}.cidr": "10.112.128.0/20"},
        f"{ZONES}.{AZ3}.cidr",
        "overlaps 10.112.128.0/19",
        "10.112.160.0/19",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/19"},
    ),
    zones_case(
        "HYP072",
        {f"{ZONES}.{AZ3}.cidr": "10.113.0.0/20"},
        f"{ZONES}.{AZ3}.cidr",
        "is not part of the VPC's 10.112.0.0/16",
        "10.112.160.0/19",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/19"},
    ),
    zones_case(
        "HYP072",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/30"},
        f"{ZONES}.{AZ3}.cidr",
        "EC2 makes subnets from /16 to /28",
        "10.112.160.0/19",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/19"},
    ),
    zones_case(
        "HYP073",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/28", f"{SPOT_3}.count": 16},
        f"{ZONES}.{AZ3}.cidr",
        "at least 16 of them are certain",
        "10.112.160.0/19",
        {f"{SPOT_3}.count": 11},
    ),
    zones_case(
        "HYP074",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/28"},
        f"{ZONES}.{AZ3}.cidr",
        "2 are certain",
        "10.112.160.0/19",
        {f"{ZONES}.{AZ3}.cidr": "10.112.160.0/24"},
    ),
    Case(
        "HYP075",
        {**AWAY, "node_groups.near": {**GPU, "partition": "gpu"}},
        "node_groups.gpu.zone_id",
        "would have nodes in usw2-az2 and usw2-az1",
        "partition: gpu-usw2-az1",
        {"node_groups.gpu.partition": "away"},
    ),
    zones_case(
        "HYP076",
        {f"{SPOT_1}.taints": [], f"{SERVE}.taints": []},
        f"{SPOT_1}.zone_id",
        "the scheduler may spread a job over both",
        "taints",
        {f"{SPOT_1}.taints": [{"key": "example.com/spot", "effect": "NoSchedule"}]},
    ),
    zones_case(
        "HYP077",
        {"acknowledge": []},
        f"{SPOT_1}.zone_id",
        "Lustre is in use2-az2",
        "remove zone_id",
        {"storage.lustre": ...},
    ),
    zones_case(
        "HYP078",
        {
            "storage.openzfs": {"deployment": "single-az-2", "capacity_gib": 512, "throughput_mbps": 160},
            SPOT_3: ...,
        },
        f"{SPOT_1}.zone_id",
        "exported to the node subnet 10.112.0.0/17 only",
        "remove zone_id",
        {"storage.openzfs": ...},
    ),
    zones_case(
        "HYP079",
        {f"{SPOT_1}.instance_type": "trn1.32xlarge", f"{SPOT_1}.instance_types": []},
        f"{SPOT_1}.zone_id",
        "trn1.32xlarge was seen in use2-az3",
        "use2-az3",
        {f"{SPOT_1}.instance_type": "g6e.12xlarge"},
    ),
]

WINDOW_CASES = [
    Case(
        "HYP080",
        {"node_groups.gpu.patching": {**patching("cron(0 3 ? * SUN *)"), "batch_percent": 50}},
        "node_groups.gpu.patching.batch_percent",
        "on EKS only",
        "remove batch_percent",
        {"node_groups.gpu.patching": patching("cron(0 3 ? * SUN *)")},
    ),
    zones_case(
        "HYP081",
        {f"{SERVE}.image_release": "1.1.0"},
        f"{SERVE}.patching",
        "patching moves the nodes past 1.1.0",
        "remove patching",
        {f"{SERVE}.image_release": ...},
    ),
    zones_case(
        "HYP082",
        {f"{SPOT_3}.patching.schedule": "cron(0 3 ? * SUN *)"},
        f"{SPOT_3}.patching.schedule",
        "`spot-1` is updated at the same time",
        "cron(0 9 ? * SUN *)",
        {f"{SPOT_3}.patching.schedule": "cron(0 5 ? * SUN *)"},
    ),
    zones_case(
        "HYP083",
        {f"{SERVE}.patching.batch_percent": 50},
        f"{SERVE}.patching.batch_percent",
        "only with a rolling strategy",
        "remove batch_percent",
        {f"{SERVE}.patching.batch_percent": ...},
    ),
    zones_case(
        "HYP084",
        {f"{SERVE}.patching": ...},
        SERVE,
        "other groups are pinned to a release of HyperPod's image (2.1.0)",
        "image_release",
        {f"{SERVE}.image_release": "2.1.0"},
    ),
    zones_case(
        "HYP085",
        {f"{SERVE}.taints": [{"key": "sagemaker.amazonaws.com/node-health-status", "effect": "NoSchedule"}]},
        f"{SERVE}.taints[0].key",
        "is HyperPod's",
        "example.com/node-health-status",
        {f"{SERVE}.taints": [{"key": "example.com/x", "effect": "NoSchedule"}]},
    ),
]

NOVA_CASES = [
    nova_case(
        "HYP087",
        {f"{TUNE}.image_release": "1.1.0"},
        f"{TUNE}.image_release",
        "no such setting as `image_release`",
        "remove image_release",
        {f"{TUNE}.image_release": ...},
    ),
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
        {f"{TUNE}.restricted.lustre": ...},
        f"{TUNE}.restricted",
        "asks for the size of the Lustre file system",
        "lustre",
        {"orchestrator.restricted_lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 250}},
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
        "HYP089",
        {f"{TUNE}.restricted.lustre.capacity_gib": 3000},
        f"{TUNE}.restricted.lustre.capacity_gib",
        "FSx makes 1200 GiB",
        "4800",
        {f"{TUNE}.restricted.lustre.capacity_gib": 1200},
    ),
    zones_case(
        "HYP090",
        {"orchestrator.restricted_lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 250}},
        "orchestrator.restricted_lustre",
        "nothing would use it",
        "remove restricted_lustre",
        {"orchestrator.restricted_lustre": ...},
    ),
    nova_case(
        "HYP091",
        {"region": "us-west-2", "network.zone_id": "usw2-az2", "orchestrator.second_zone_id": "usw2-az1"},
        "region",
        "in us-east-1 only",
        "us-east-1",
        {"region": "us-east-1", "network.zone_id": "use1-az6", "orchestrator.second_zone_id": "use1-az4"},
    ),
    Case(
        "HYP098",
        {"node_groups.gpu.deep_health_checks": ["instance-stress"], "node_groups.gpu.image_release": "2.1.0"},
        "node_groups.gpu.image_release",
        "for HyperPod's newest image, and may not work as expected on 2.1.0",
        "remove image_release",
        {"node_groups.gpu.image_release": ...},
    ),
    nova_case(
        "HYP092",
        {"orchestrator.provisioning": "continuous"},
        "orchestrator.provisioning",
        "switch continuous provisioning off",
        "classic",
        {"orchestrator.provisioning": "classic"},
    ),
    nova_case(
        "HYP092",
        {"orchestrator.autoscaling": {"max_nodes": 4}},
        "orchestrator.autoscaling",
        "switch Karpenter off",
        "remove autoscaling",
        {"orchestrator.autoscaling": ...},
    ),
    nova_case(
        "HYP093",
        {"orchestrator.training_operator": True},
        "orchestrator.training_operator",
        "is not supported in such a cluster",
        "remove training_operator",
        {"orchestrator.training_operator": False},
    ),
    nova_case(
        "HYP094",
        {"node_groups.other": {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1}},
        "node_groups.other",
        "do not combine them",
        "remove other",
        {"node_groups.other": ...},
    ),
    nova_case(
        "HYP095",
        {f"{TUNE}.restricted.reads": ["example-nova-data"]},
        f"{TUNE}.restricted",
        "AWS changes CoreDNS and the VPC CNI",
        "run AWS's script",
        {f"{TUNE}.restricted": ...},
    ),
    nova_case(
        "HYP096",
        {f"{TUNE}.restricted.writes": ...},
        f"{TUNE}.restricted",
        "without `writes` its jobs reach no S3 bucket",
        "writes",
        {f"{TUNE}.restricted.writes": ["example-nova-results"]},
    ),
]

test_breaks, test_mended, test_advice_works, test_every_rule_is_broken_once = table_tests(
    HYP, cases=[*CASES, *ZONE_CASES, *WINDOW_CASES, *NOVA_CASES]
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
