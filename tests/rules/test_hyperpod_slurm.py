"""Rules on HyperPod with Slurm, each broken and mended; the schedule compared with AWS's schema."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_table import Case, assert_breaks, assert_complete, assert_mended, found

from ultracluster.rules.hyperpod_slurm import RULES

CONTROLLER = {"role": "controller", "instance_type": "m5.2xlarge", "count": 1}
LOGIN = {"role": "login", "instance_type": "m5.xlarge", "count": 2}
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "gpu"}
CLASSIC = {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"}
IMAGE = "ami-0123456789abcdef0"
PLAN = {
    "kind": "training-plan",
    "arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/spring",
}
SPOT = {"kind": "spot"}
TYPE = "node_groups.gpu.instance_type"


def groups(count: int) -> dict[str, Any]:
    """So many groups in all; three are there."""
    return {f"node_groups.more{number}": GPU for number in range(count - 3)}


def patching(schedule: str) -> dict[str, str]:
    return {"kind": "scheduled", "schedule": schedule}


DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}
EXISTING_DATABASE = {
    "kind": "existing",
    "endpoint": "accounting.example.internal",
    "secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm",
    "security_group_id": "sg-0123456789abcdef0",
}
OPENZFS = {"deployment": "single-az-ha-2", "capacity_gib": 256, "throughput_mbps": 160}

GROUP_CASES = [
    Case(
        "HPS001",
        {"node_groups.controller": ...},
        "node_groups",
        "no group has the role `controller`",
        "role: controller",
        {"node_groups.controller": CONTROLLER},
    ),
    Case(
        "HPS001",
        {"node_groups.second": CONTROLLER},
        "node_groups.second.role",
        "`controller` is the controller group already",
        "accounting_database",
        {"node_groups.second.role": "login"},
    ),
    Case(
        "HPS002",
        {"node_groups.controller.count": 2},
        "node_groups.controller.count",
        "legacy provisioning file",
        "1",
        {"node_groups.controller.count": 1},
    ),
    Case(
        "HPS002",
        {"node_groups.controller.count": 0},
        "node_groups.controller.count",
        "never come up",
        "1",
        {"node_groups.controller.count": 1},
    ),
    Case(
        "HPS003",
        {"node_groups.second": LOGIN},
        "node_groups.second.role",
        "`login` is the login group already",
        "count: 3 in `login`",
        {"node_groups.login": ...},
    ),
    Case(
        "HPS004",
        {"node_groups.login.role": "system"},
        "node_groups.login.role",
        "Kubernetes",
        "role: login",
        {"node_groups.login.role": "login"},
    ),
    Case(
        "HPS004",
        {"node_groups.second": {**LOGIN, "role": "system"}},
        "node_groups.second.role",
        "Kubernetes",
        "role: compute",
        {"node_groups.second": GPU},
    ),
    Case(
        "HPS005",
        {"node_groups.gpu.partition": ...},
        "node_groups.gpu.partition",
        "exactly one",
        "partition: gpu",
        {"node_groups.gpu.partition": "gpu"},
    ),
    Case(
        "HPS006",
        {"node_groups.login.partition": "gpu"},
        "node_groups.login.partition",
        "on a login group",
        "remove partition",
        {"node_groups.login.partition": ...},
    ),
    Case(
        "HPS007",
        {"node_groups.gpu.partition": "dev"},
        "node_groups.gpu.partition",
        "every compute node",
        "partition: gpu",
        {"node_groups.gpu.partition": "dev2"},
    ),
    Case(
        "HPS008",
        {"node_groups.gpu.partition": "default"},
        "node_groups.gpu.partition",
        "slurm.conf",
        "partition: gpu",
        {"node_groups.gpu.partition": "default-gpu"},
    ),
    Case(
        "HPS010",
        groups(101),
        "node_groups",
        "101 groups; the API takes 100",
        "fewer groups",
        {"node_groups.more0": ...},
    ),
    Case(
        "HPS011",
        groups(21),
        "node_groups",
        "21 groups",
        "20 groups or fewer",
        {"node_groups.more0": ...},
    ),
    Case(
        "HPS012",
        {"node_groups.gpu.min_count": 3},
        "node_groups.gpu.min_count",
        "3 nodes at least, and 2 wanted",
        "2",
        {"node_groups.gpu.min_count": 2},
    ),
    Case(
        "HPS013",
        {**CLASSIC, "node_groups.gpu.min_count": 2},
        "node_groups.gpu.min_count",
        "all or nothing anyway",
        "remove min_count",
        {"node_groups.gpu.min_count": ...},
    ),
    Case(
        "HPS014",
        {"node_groups.gpu.min_count": 0},
        "node_groups.gpu.min_count",
        "0 nodes at least",
        "2, which is all or nothing",
        {"node_groups.gpu.min_count": 1},
    ),
    Case(
        "HPS015",
        {"node_groups.gpu.count": 0},
        "node_groups.gpu.count",
        "cannot run a job",
        "count: 1",
        {"node_groups.gpu.count": 1},
    ),
    Case(
        "HPS015",
        {"node_groups.gpu": ...},
        "node_groups",
        "cannot run a job",
        "role: compute",
        {"node_groups.gpu": GPU},
    ),
    Case(
        "HPS020",
        {"node_groups.gpu.capacity": {"kind": "reservation", "id": "cr-0123456789abcdef0"}},
        "node_groups.gpu.capacity",
        "matched by account and zone id alone",
        "onboarded in usw2-az2",
        {"node_groups.gpu.capacity": {"kind": "on-demand"}},
    ),
    Case(
        "HPS021",
        {"node_groups.gpu.capacity": {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}},
        "node_groups.gpu.capacity",
        "cr-0123456789abcdef0 cannot be used",
        "kind: training-plan",
        {"node_groups.gpu.capacity": PLAN},
    ),
    Case(
        "HPS022",
        {**CLASSIC, "node_groups.gpu.capacity": SPOT},
        "node_groups.gpu.capacity",
        "refuses Spot",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous"},
    ),
    Case(
        "HPS023",
        {"node_groups.controller.capacity": SPOT},
        "node_groups.controller.capacity",
        "the queue stops",
        "on-demand",
        {"node_groups.controller.capacity": ...},
    ),
    Case(
        "HPS024",
        {TYPE: "p6e-gb200.36xlarge", "node_groups.gpu.capacity": SPOT},
        "node_groups.gpu.capacity",
        "does not list p6e-gb200.36xlarge for Spot",
        "kind: training-plan",
        {"node_groups.gpu.capacity": PLAN},
    ),
    Case(
        "HPS025",
        {"node_groups.login.capacity": PLAN},
        "node_groups.login.capacity",
        "on a login group",
        "on-demand",
        {"node_groups.login.capacity": ...},
    ),
    Case(
        "HPS026",
        {"node_groups.gpu.capacity": PLAN},
        TYPE,
        "no training plan is sold for g6e.12xlarge; plans are for p4d",
        "xlarge",
        {TYPE: "p5.48xlarge"},
    ),
]

TYPE_CASES = [
    Case(
        "HPS040",
        {TYPE: "inf2.48xlarge"},
        TYPE,
        "refuses ml.inf2.48xlarge",
        "48xlarge",
        {TYPE: "trn2.48xlarge"},
    ),
    Case(
        "HPS040",
        {TYPE: "trn2u.48xlarge"},
        TYPE,
        "refuses ml.trn2u.48xlarge",
        "trn2.48xlarge",
        {TYPE: "trn2.48xlarge"},
    ),
    Case(
        "HPS041",
        {"region": "eu-south-2", "network.zone_id": "eus2-az1", TYPE: "p5.48xlarge"},
        TYPE,
        "no price is published for ml.p5.48xlarge in eu-south-2",
        "region: eu-",
        {"region": "us-west-2"},
    ),
    Case(
        "HPS042",
        {"region": "us-east-1", "network.zone_id": "use1-az1", TYPE: "p5en.48xlarge"},
        TYPE,
        "not in use1-az1",
        "network.zone_id: use1-az2",
        {"network.zone_id": "use1-az6"},
    ),
    Case(
        "HPS043",
        {"node_groups.login.instance_type": "g6e.xlarge"},
        "node_groups.login.instance_type",
        "1 x L40S",
        "m5.2xlarge",
        {"node_groups.login.instance_type": "m5.xlarge"},
    ),
    Case(
        "HPS044",
        {"node_groups.login.instance_type": "m7g.xlarge"},
        "node_groups.login.instance_type",
        "m7g.xlarge is arm64, and `gpu` is x86_64",
        "m7i.xlarge",
        {"node_groups.login.instance_type": "m7i.xlarge"},
    ),
    Case(
        "HPS044",
        {TYPE: "p6e-gb200.36xlarge"},
        "node_groups.login.instance_type",
        "m5.xlarge is x86_64, and `gpu` is arm64",
        "m7g.xlarge",
        {"node_groups.login.instance_type": "m7g.xlarge"},
    ),
    Case(
        "HPS044",
        {"node_groups.arm": {**GPU, "instance_type": "c7g.16xlarge", "partition": "arm"}},
        "node_groups.arm.instance_type",
        "c7g.16xlarge is arm64, and `gpu` is x86_64",
        "a second environment",
        {"node_groups.arm.instance_type": "c6i.16xlarge"},
    ),
    Case(
        "HPS045",
        {
            "node_groups.gpu.image": IMAGE,
            "node_groups.login.image": IMAGE,
            "node_groups.login.instance_type": "m7g.xlarge",
        },
        "node_groups.gpu.image",
        "is the image of `login` (arm64), too",
        "made for x86_64",
        {"node_groups.login.image": "ami-0fedcba9876543210"},
    ),
    Case(
        "HPS046",
        {TYPE: "g7.48xlarge", "node_groups.gpu.threads_per_core": 2},
        "node_groups.gpu.threads_per_core",
        "2 threads per core on g7.48xlarge, which takes 1",
        "1",
        {"node_groups.gpu.threads_per_core": 1},
    ),
    Case(
        "HPS047",
        {"node_groups.login.deep_health_checks": ["instance-stress"]},
        "node_groups.login.deep_health_checks",
        "`login` is a login group",
        "remove deep_health_checks",
        {"node_groups.login.deep_health_checks": []},
    ),
    Case(
        "HPS047",
        {TYPE: "c6i.32xlarge", "node_groups.gpu.deep_health_checks": ["instance-stress"]},
        "node_groups.gpu.deep_health_checks",
        "c6i.32xlarge has no accelerators",
        "remove deep_health_checks",
        {TYPE: "p5.48xlarge"},
    ),
    Case(
        "HPS048",
        {
            "node_groups.gpu.count": 1,
            "node_groups.gpu.deep_health_checks": ["instance-stress", "instance-connectivity"],
        },
        "node_groups.gpu.deep_health_checks[1]",
        "the group has 1",
        "count: 2, or [instance-stress]",
        {"node_groups.gpu.count": 2},
    ),
    Case(
        "HPS048",
        {
            "node_groups.gpu.count": 1,
            "node_groups.gpu.deep_health_checks": ["instance-connectivity"],
        },
        "node_groups.gpu.deep_health_checks[0]",
        "the group has 1",
        "remove deep_health_checks",
        {"node_groups.gpu.deep_health_checks": ["instance-stress"]},
    ),
    Case(
        "HPS049",
        {"node_groups.gpu.image": IMAGE},
        "node_groups.gpu.image",
        "AWS contradicts itself",
        "remove image",
        {"node_groups.gpu.image": ...},
    ),
    Case(
        "HPS050",
        {"node_groups.gpu.image": IMAGE, "node_groups.login.image": IMAGE},
        "node_groups.controller",
        "inherits the image of the oldest",
        "image: ami-",
        {"node_groups.controller.image": IMAGE},
    ),
    Case(
        "HPS050",
        {"node_groups.gpu.image": IMAGE},
        "node_groups.login",
        "inherits the image of the oldest",
        "on no group",
        CLASSIC,
    ),
    Case(
        "HPS051",
        {"node_groups.gpu.image": IMAGE, "node_groups.gpu.patching": {"kind": "when-idle"}},
        "node_groups.gpu.patching",
        "may be replaced",
        "remove patching",
        {"node_groups.gpu.image": ...},
    ),
    Case(
        "HPS052",
        {"node_groups.gpu.volume_gib": 1025},
        "node_groups.gpu.volume_gib",
        "1025 GiB per node",
        "1024",
        {"node_groups.gpu.volume_gib": 1024},
    ),
    Case(
        "HPS053",
        {"node_groups.gpu.patching": patching("cron(0 3 * * SUN *)")},
        "node_groups.gpu.patching.schedule",
        "`*` is no day of month there",
        "cron(0 3 ? * SUN *)",
        {"node_groups.gpu.patching": patching("cron(0 3 ? * SUN *)")},
    ),
    Case(
        "HPS053",
        {"node_groups.gpu.patching": patching("cron(0 3 * * SUN)")},
        "node_groups.gpu.patching.schedule",
        "5 fields instead of six",
        "cron(0 3 ? * SUN *)",
        {"node_groups.gpu.patching": {"kind": "when-all-idle"}},
    ),
    Case(
        "HPS054",
        {"node_groups.controller.patching": {"kind": "when-idle"}},
        "node_groups.controller.patching",
        "Accounting is on that volume, too",
        "/opt/slurm/etc",
        {"node_groups.controller.patching": ...},
    ),
    Case(
        "HPS054",
        {
            "node_groups.controller.patching": {"kind": "when-idle"},
            "storage.accounting_database": DATABASE,
        },
        "node_groups.controller.patching",
        "hand edits of slurm.conf",
        "/opt/slurm/etc",
        {"node_groups.controller.patching": ...},
    ),
]

CLUSTER_CASES = [
    Case(
        "HPS060",
        {"orchestrator.slurm_config_strategy": "merge"},
        "orchestrator.slurm_config_strategy",
        "refuses any strategy",
        "remove slurm_config_strategy",
        {"orchestrator.slurm_config_strategy": ...},
    ),
    Case(
        "HPS061",
        {"orchestrator.provisioning": "classic"},
        "orchestrator.slurm_config_strategy",
        "AWS's own pages disagree",
        "slurm_config_strategy: merge",
        {"orchestrator.slurm_config_strategy": "merge"},
    ),
    Case(
        "HPS062",
        {**CLASSIC, "storage.accounting_database": DATABASE},
        "storage.accounting_database",
        "with continuous provisioning only",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous"},
    ),
    Case(
        "HPS063",
        {"storage.accounting_database": EXISTING_DATABASE},
        "storage.accounting_database",
        "a cluster `dev` has written to accounting.example.internal",
        "cluster_name: dev-2",
        {"storage.accounting_database": DATABASE},
    ),
    Case(
        "HPS066",
        {"orchestrator.provisioning": "classic", "orchestrator.slurm_config_strategy": "merge"},
        "orchestrator.provisioning",
        "a key of AWS's",
        "provisioning: continuous",
        {"orchestrator.provisioning": "continuous", "orchestrator.slurm_config_strategy": None},
    ),
    Case(
        "HPS064",
        {"orchestrator.lifecycle": "on-create"},
        "orchestrator.lifecycle",
        "no file system mounted",
        "on-init-complete",
        {"orchestrator.lifecycle": "on-init-complete"},
    ),
    Case(
        "HPS065",
        {"orchestrator.lifecycle": "none"},
        "orchestrator.lifecycle",
        "release 2026.07 is not installed",
        "on-init-complete",
        {"orchestrator.lifecycle": "on-init-complete"},
    ),
    Case(
        "HPS065",
        {"orchestrator.lifecycle": "none", "storage.lustre.efa": True},
        "orchestrator.lifecycle",
        "may stay on TCP",
        "on-init-complete",
        {"orchestrator.lifecycle": "on-init-complete"},
    ),
    Case(
        "HPS070",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/fsx"}},
        "storage.openzfs.mount_path",
        "both mounted at /fsx",
        "/home",
        {"storage.openzfs": OPENZFS},
    ),
    Case(
        "HPS070",
        {"storage.openzfs": OPENZFS, "storage.lustre.mount_path": "/srv/..//home"},
        "storage.openzfs.mount_path",
        "one hides the other",
        "/shared",
        {"storage.lustre.mount_path": "/fsx"},
    ),
    Case(
        "HPS071",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/fsx/home"}},
        "storage.openzfs.mount_path",
        "within the mount /fsx",
        "/home",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/fsx-home"}},
    ),
    Case(
        "HPS072",
        {"storage.lustre.mount_path": "/opt/sagemaker/data"},
        "storage.lustre.mount_path",
        "would hide /opt/sagemaker, which holds the second EBS volume",
        "/fsx",
        {"storage.lustre.mount_path": "/opt/data"},
    ),
    Case(
        "HPS072",
        {"storage.lustre.mount_path": "/opt"},
        "storage.lustre.mount_path",
        "the software of the image",
        "/fsx",
        {"storage.lustre.mount_path": "/opt2"},
    ),
    Case(
        "HPS072",
        {"storage.openzfs": {**OPENZFS, "mount_path": "/home/../etc"}},
        "storage.openzfs.mount_path",
        "part of the operating system",
        "/home",
        {"storage.openzfs": OPENZFS},
    ),
]

CASES = [*GROUP_CASES, *TYPE_CASES, *CLUSTER_CASES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_breaks(case: Case) -> None:
    assert_breaks(RULES, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_mended(case: Case) -> None:
    assert_mended(RULES, case)


def test_every_rule_is_broken_once() -> None:
    assert_complete(RULES, CASES)


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_shipped_environments_break_nothing(base: str) -> None:
    assert [one for one in found(RULES, {}, base) if not one.acknowledged] == []


def test_ids_and_titles_are_unique_and_sourced() -> None:
    assert len({rule.id for rule in RULES.rules}) == len(RULES.rules)
    assert len({rule.title for rule in RULES.rules}) == len(RULES.rules)
    assert all(rule.source and not rule.title.endswith(".") for rule in RULES.rules)


def test_types_that_nobody_knows_are_left_to_others() -> None:
    changes = {
        TYPE: "p99.metal",
        "node_groups.gpu.threads_per_core": 2,
        "node_groups.gpu.deep_health_checks": ["instance-stress"],
        "node_groups.gpu.capacity": SPOT,
    }
    assert found(RULES, changes) == []


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
    assert found(RULES, changes) == []


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
            refused = [one.code for one in found(RULES, changes)] == ["HPS053"]
            assert refused == (re.fullmatch(pattern, expression) is None), expression


@pytest.mark.parametrize(("lustre", "home"), list(itertools.permutations(["/fsx", "/home", "/data/a"], 2)))
def test_ordinary_mounts_are_clean(lustre: str, home: str) -> None:
    changes = {
        "storage.lustre.mount_path": lustre,
        "storage.openzfs": {**OPENZFS, "mount_path": home},
    }
    assert found(RULES, changes) == []
