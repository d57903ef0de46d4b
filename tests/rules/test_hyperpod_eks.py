"""Rules on HyperPod on EKS, each broken and mended; its tables held against AWS's own lists."""

from __future__ import annotations

import re
from typing import Any

import botocore.session
import pytest
from project import ENVIRONMENTS
from rules_support import changed, environment_data, loaded
from rules_table import Case, assert_breaks, assert_complete, assert_mended, found

from ultracluster.catalog import instance_type, instance_types, regions
from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.catalog.hyperpod_eks import health_agent_image, health_agent_regions, mig_profiles
from ultracluster.compute.capacity import decide
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.rules import check
from ultracluster.rules.address_budget import address_budget
from ultracluster.rules.hyperpod_eks import RULES
from ultracluster.rules.hyperpod_slurm import RULES as SLURM_RULES

BASE = "hyperpod-eks-p5"
TRAIN, SYSTEM, ASKED = "node_groups.train", "node_groups.system", "orchestrator"
TYPE = f"{TRAIN}.instance_type"
IMAGE = "ami-0123456789abcdef0"
PLAN_ARN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/spring"
PLAN = {"kind": "training-plan", "arn": PLAN_ARN}
ON_DEMAND, SPOT = {"kind": "on-demand"}, {"kind": "spot"}
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
RESERVATION = {"kind": "reservation", "id": "cr-0123456789abcdef0"}
CLASSIC = {f"{ASKED}.provisioning": "classic", f"{TRAIN}.min_count": ...}
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1}
SCALED = {
    f"{ASKED}.autoscaling": {"max_nodes": 8},
    f"{TRAIN}.count": 0,
    f"{TRAIN}.min_count": ...,
    f"{TRAIN}.capacity": ON_DEMAND,
    f"{TRAIN}.deep_health_checks": [],
}
OPERATOR = {f"{ASKED}.gpu_plugin": "gpu-operator"}
FLEXIBLE = {TYPE: "g6e.24xlarge", f"{TRAIN}.capacity": ON_DEMAND}


def case(rule: str, broken: dict[str, Any], at: str, says: str, instead: str, mended: dict[str, Any]) -> Case:
    return Case(rule, broken, at, says, instead, mended, base=BASE)


def groups(count: int) -> dict[str, Any]:
    """So many groups in all; two are there."""
    return {f"node_groups.more{number}": GPU for number in range(count - 2)}


def labels(count: int) -> dict[str, str]:
    return {f"label-{number}": "x" for number in range(count)}


CLUSTER_CASES = [
    case(
        "HPE001",
        {f"{ASKED}.cluster_name": "large-"},
        f"{ASKED}.cluster_name",
        "takes no `-` at the end",
        "large",
        {f"{ASKED}.cluster_name": "large"},
    ),
    case(
        "HPE002",
        {f"{ASKED}.kubernetes_version": "1.36"},
        f"{ASKED}.kubernetes_version",
        "for 1.30 to 1.35",
        '"1.35"',
        {f"{ASKED}.kubernetes_version": "1.35"},
    ),
    case(
        "HPE002",
        {f"{ASKED}.kubernetes_version": "1.29"},
        f"{ASKED}.kubernetes_version",
        "a control plane of 1.29",
        '"1.30"',
        {f"{ASKED}.kubernetes_version": "1.30"},
    ),
    case(
        "HPE003",
        {f"{ASKED}.kubernetes_version": "1.30"},
        f"{ASKED}.training_operator",
        "for Kubernetes 1.31 to 1.36, not for 1.30",
        'kubernetes_version: "1.31"',
        {f"{ASKED}.kubernetes_version": "1.31"},
    ),
    case(
        "HPE003",
        {f"{ASKED}.kubernetes_version": "1.30"},
        f"{ASKED}.training_operator",
        "EKS would refuse it",
        "addon_versions",
        {f"{ASKED}.addon_versions": {"amazon-sagemaker-hyperpod-training-operator": "v1.2.0-eksbuild.1"}},
    ),
    case(
        "HPE004",
        {f"{ASKED}.task_governance": True},
        f"{ASKED}.task_governance",
        "`scheduler` is kueue",
        "scheduler: none",
        {f"{ASKED}.scheduler": "none"},
    ),
    case(
        "HPE005",
        {"region": "ap-northeast-2"},
        "region",
        "no image of the agent is known in ap-northeast-2",
        "us-east-2",
        {"region": "us-west-2"},
    ),
    case(
        "HPE006",
        {f"{ASKED}.addon_versions": {"amazon-sagemaker-hyperpod-taskgovernance": "v1.6.1-eksbuild.2"}},
        f"{ASKED}.addon_versions.amazon-sagemaker-hyperpod-taskgovernance",
        "nothing asks for it",
        "cert-manager",
        {f"{ASKED}.addon_versions": {"cert-manager": "v1.18.2-eksbuild.2"}},
    ),
    case(
        "HPE060",
        {**SCALED, f"{ASKED}.provisioning": "classic"},
        f"{ASKED}.provisioning",
        "classic provisioning cannot",
        "continuous",
        {f"{ASKED}.provisioning": "continuous"},
    ),
    case(
        "HPE060",
        {**SCALED, f"{ASKED}.node_recovery": "none"},
        f"{ASKED}.node_recovery",
        "to be automatic",
        "automatic",
        {f"{ASKED}.node_recovery": "automatic"},
    ),
    case(
        "HPE061",
        {**SCALED, f"{TRAIN}.count": 4},
        f"{ASKED}.autoscaling",
        "starts from 0",
        "count: 0",
        {f"{TRAIN}.count": 0},
    ),
    case(
        "HPE062",
        {**SCALED, f"{TRAIN}.capacity": PLAN},
        f"{TRAIN}.capacity",
        "no group with a training plan",
        "on-demand",
        {f"{TRAIN}.capacity": ON_DEMAND},
    ),
    case(
        "HPE062",
        {**SCALED, f"{TRAIN}.deep_health_checks": ["instance-stress"]},
        f"{TRAIN}.deep_health_checks",
        "no group with deep health checks",
        "remove deep_health_checks",
        {f"{TRAIN}.deep_health_checks": []},
    ),
    case(
        "HPE062",
        {**SCALED, TYPE: "p6e-gb200.36xlarge"},
        TYPE,
        "part of an UltraServer",
        "another type",
        {TYPE: "p5.48xlarge"},
    ),
    case(
        "HPE063",
        {**SCALED, "node_groups.Train": {**GPU, "count": 0}},
        "node_groups.Train",
        "another group is `train`, too",
        "Train-2",
        {"node_groups.Train": {**GPU, "count": 1}},
    ),
    case(
        "HPE064",
        {f"{ASKED}.tiered_checkpoints_percent": 19},
        f"{ASKED}.tiered_checkpoints_percent",
        "the two disagree",
        "20",
        {f"{ASKED}.tiered_checkpoints_percent": 20},
    ),
    case(
        "HPE065",
        {TYPE: "p6e-gb200.36xlarge"},
        TYPE,
        "ComputeDomain",
        "dra-driver-nvidia-gpu",
        {TYPE: "p6-b200.48xlarge"},
    ),
    case(
        "HPE066",
        CLASSIC,
        f"{ASKED}.provisioning",
        "a key of AWS's",
        "provisioning: continuous",
        {f"{ASKED}.provisioning": "continuous"},
    ),
]

GROUP_CASES = [
    case("HPE010", groups(101), "node_groups", "101 groups", "fewer groups", {"node_groups.more0": ...}),
    case("HPE011", groups(21), "node_groups", "21 groups", "20 groups", {"node_groups.more0": ...}),
    case(
        "HPE012",
        {f"{TRAIN}.min_count": 5},
        f"{TRAIN}.min_count",
        "5 nodes at least, and 4 wanted",
        "4",
        {f"{TRAIN}.min_count": 4},
    ),
    case(
        "HPE013",
        {f"{ASKED}.provisioning": "classic"},
        f"{TRAIN}.min_count",
        "with classic provisioning",
        "remove min_count",
        {f"{TRAIN}.min_count": ...},
    ),
    case(
        "HPE014",
        {f"{TRAIN}.min_count": 0},
        f"{TRAIN}.min_count",
        "0 nodes at least",
        "4, which is all or nothing",
        {f"{TRAIN}.min_count": 1},
    ),
    case(
        "HPE015",
        {f"{TRAIN}.count": 0},
        f"{TRAIN}.count",
        "cannot run a job",
        "count: 1",
        SCALED,
    ),
    case(
        "HPE016",
        {TRAIN: ...},
        "node_groups",
        "refuses a cluster without groups",
        "orchestrator.kind: eks",
        {TRAIN: GPU},
    ),
    case(
        "HPE017",
        {f"{SYSTEM}.volume_gib": 100},
        f"{SYSTEM}.volume_gib",
        "it would be ignored",
        "remove volume_gib",
        {f"{SYSTEM}.volume_gib": ...},
    ),
    case(
        "HPE020",
        {f"{TRAIN}.capacity": RESERVATION},
        f"{TRAIN}.capacity",
        "matched by account and zone id alone",
        "onboarded in use2-az2",
        {f"{TRAIN}.capacity": ON_DEMAND},
    ),
    case(
        "HPE021",
        {f"{TRAIN}.capacity": BLOCK},
        f"{TRAIN}.capacity",
        "cr-0123456789abcdef0 cannot be used",
        "kind: training-plan",
        {f"{TRAIN}.capacity": PLAN},
    ),
    case(
        "HPE022",
        {**CLASSIC, f"{TRAIN}.capacity": SPOT},
        f"{TRAIN}.capacity",
        "refuses Spot",
        "provisioning: continuous",
        {f"{ASKED}.provisioning": "continuous"},
    ),
    case(
        "HPE024",
        {TYPE: "p6e-gb200.36xlarge", f"{TRAIN}.capacity": SPOT},
        f"{TRAIN}.capacity",
        "does not list p6e-gb200.36xlarge for Spot",
        "kind: training-plan",
        {f"{TRAIN}.capacity": PLAN},
    ),
    case(
        "HPE025",
        {f"{SYSTEM}.capacity": PLAN},
        f"{SYSTEM}.capacity",
        "on a system group",
        "on-demand",
        {f"{SYSTEM}.capacity": ON_DEMAND},
    ),
    case(
        "HPE026",
        {TYPE: "g6e.12xlarge"},
        TYPE,
        "no training plan is sold for g6e.12xlarge",
        "xlarge",
        {TYPE: "p5en.48xlarge"},
    ),
    case(
        "HPE030",
        {f"{TRAIN}.labels": labels(48)},
        f"{TRAIN}.labels",
        "48 labels, and 3 of this package",
        "47 or fewer",
        {f"{TRAIN}.labels": labels(47)},
    ),
    case(
        "HPE030",
        {f"{TRAIN}.labels": labels(47), **OPERATOR, f"{TRAIN}.mig_profile": "1g.10gb"},
        f"{TRAIN}.labels",
        "47 labels, and 4",
        "46 or fewer",
        {f"{TRAIN}.mig_profile": ...},
    ),
    case(
        "HPE031",
        {f"{TRAIN}.taints": [{"key": "team", "effect": "NoSchedule"}]},
        f"{TRAIN}.taints",
        "taints nodes itself",
        "deep_health_checks",
        {f"{TRAIN}.deep_health_checks": []},
    ),
    case(
        "HPE032",
        {f"{TRAIN}.labels": {"nvidia.com/mig.config": "all-1g.10gb"}},
        f'{TRAIN}.labels."nvidia.com/mig.config"',
        "not checked against the GPU",
        "mig_profile: 1g.10gb",
        {f"{TRAIN}.labels": {}, f"{TRAIN}.mig_profile": "1g.10gb"},
    ),
    case(
        "HPE033",
        {**OPERATOR, f"{TRAIN}.mig_profile": "1g.5gb"},
        f"{TRAIN}.mig_profile",
        "its profiles are 1g.10gb, 1g.20gb",
        "1g.10gb",
        {f"{TRAIN}.mig_profile": "1g.10gb"},
    ),
    case(
        "HPE033",
        {**OPERATOR, TYPE: "g6e.12xlarge", f"{TRAIN}.mig_profile": "1g.10gb"},
        f"{TRAIN}.mig_profile",
        "cannot be cut",
        "remove mig_profile",
        {f"{TRAIN}.mig_profile": ...},
    ),
    case(
        "HPE034",
        {f"{TRAIN}.mig_profile": "7g.80gb"},
        f"{TRAIN}.mig_profile",
        "gpu_plugin is device-plugin",
        "gpu-operator",
        OPERATOR,
    ),
    case(
        "HPE035",
        {**OPERATOR, TYPE: "p6-b300.48xlarge", f"{TRAIN}.mig_profile": "1g.34gb"},
        f"{TRAIN}.mig_profile",
        "`all-1g.34gb` would mean nothing",
        "migManager",
        {TYPE: "p6-b200.48xlarge", f"{TRAIN}.mig_profile": "1g.23gb"},
    ),
    case(
        "HPE036",
        {**CLASSIC, **FLEXIBLE, f"{TRAIN}.instance_types": ["p5.48xlarge"]},
        f"{TRAIN}.instance_types",
        "with classic provisioning",
        "provisioning: continuous",
        {f"{ASKED}.provisioning": "continuous"},
    ),
    case(
        "HPE036",
        {f"{TRAIN}.instance_types": ["p5en.48xlarge"]},
        f"{TRAIN}.instance_types",
        "a training plan holds instances of one type",
        "remove instance_types",
        {f"{TRAIN}.capacity": ON_DEMAND},
    ),
    case(
        "HPE037",
        {**FLEXIBLE, f"{TRAIN}.instance_types": ["g6e.48xlarge"]},
        f"{TRAIN}.instance_types[0]",
        "g6e.48xlarge has 8 x L40S (x86_64), g6e.24xlarge has 4 x L40S",
        "g6e.12xlarge",
        {f"{TRAIN}.instance_types": ["g6e.12xlarge"]},
    ),
    case(
        "HPE038",
        {**FLEXIBLE, f"{TRAIN}.instance_types": ["g6e.12xlarge", "g6e.12xlarge"]},
        f"{TRAIN}.instance_types[1]",
        "stands before already",
        "remove it",
        {f"{TRAIN}.instance_types": ["g6e.12xlarge"]},
    ),
    case(
        "HPE039",
        {**FLEXIBLE, f"{TRAIN}.instance_types": ["g99.metal"]},
        f"{TRAIN}.instance_types[0]",
        "no instance type g99.metal",
        "catalogue",
        {f"{TRAIN}.instance_types": ["g6e.12xlarge"]},
    ),
]

TYPE_CASES = [
    case("HPE040", {TYPE: "inf2.48xlarge"}, TYPE, "refuses ml.inf2.48xlarge", "", {TYPE: "trn2.48xlarge"}),
    case(
        "HPE040",
        {**FLEXIBLE, f"{TRAIN}.instance_types": ["trn2u.48xlarge"]},
        f"{TRAIN}.instance_types[0]",
        "refuses ml.trn2u.48xlarge",
        "trn2.48xlarge",
        {f"{TRAIN}.instance_types": ["g6e.12xlarge"]},
    ),
    case(
        "HPE041",
        {"region": "eu-south-2", "network.zone_id": "eus2-az1"},
        TYPE,
        "no price is published for ml.p5.48xlarge in eu-south-2",
        "region: eu-",
        {"region": "us-west-2"},
    ),
    case(
        "HPE042",
        {"region": "us-east-1", "network.zone_id": "use1-az1", TYPE: "p5en.48xlarge"},
        TYPE,
        "not in use1-az1",
        "network.zone_id: use1-az2",
        {"network.zone_id": "use1-az6"},
    ),
    case(
        "HPE045",
        {
            f"{TRAIN}.image": IMAGE,
            "node_groups.arm": {
                **GPU,
                "instance_type": "c7g.16xlarge",
                "image": IMAGE,
            },
        },
        "node_groups.arm.image",
        "is the image of `train` (x86_64), too",
        "made for arm64",
        {"node_groups.arm.image": "ami-0fedcba9876543210"},
    ),
    case(
        "HPE046",
        {TYPE: "g7.48xlarge", f"{TRAIN}.threads_per_core": 2},
        f"{TRAIN}.threads_per_core",
        "2 threads per core on g7.48xlarge",
        "1",
        {f"{TRAIN}.threads_per_core": 1},
    ),
    case(
        "HPE047",
        {TYPE: "c6i.32xlarge"},
        f"{TRAIN}.deep_health_checks",
        "c6i.32xlarge has no accelerators",
        "remove deep_health_checks",
        {TYPE: "p5.48xlarge"},
    ),
    case(
        "HPE048",
        {f"{TRAIN}.count": 1, f"{TRAIN}.min_count": 1},
        f"{TRAIN}.deep_health_checks[1]",
        "the group has 1",
        "count: 2, or [instance-stress]",
        {f"{TRAIN}.count": 2},
    ),
    case(
        "HPE049",
        {f"{TRAIN}.image": IMAGE},
        f"{TRAIN}.image",
        "HyperPod's EKS image of August 2025 or later for Kubernetes 1.34",
        "remove image",
        {f"{TRAIN}.image": ...},
    ),
    case(
        "HPE050",
        {f"{TRAIN}.image": IMAGE, "node_groups.more": GPU},
        "node_groups.more",
        "inherits the image of the oldest",
        "on no group",
        {"node_groups.more": {**GPU, "image": IMAGE}},
    ),
    case(
        "HPE051",
        {f"{TRAIN}.image": IMAGE, f"{TRAIN}.patching": {"kind": "when-idle"}},
        f"{TRAIN}.patching",
        "may be replaced",
        "remove patching",
        {f"{TRAIN}.image": ...},
    ),
    case(
        "HPE052",
        {f"{TRAIN}.volume_gib": 1025},
        f"{TRAIN}.volume_gib",
        "1025 GiB per node",
        "1024",
        {f"{TRAIN}.volume_gib": 1024},
    ),
    case(
        "HPE053",
        {f"{TRAIN}.patching": {"kind": "scheduled", "schedule": "cron(0 3 * * SUN)"}},
        f"{TRAIN}.patching.schedule",
        "5 fields instead of six",
        "cron(0 3 ? * SUN *)",
        {f"{TRAIN}.patching": {"kind": "when-all-idle"}},
    ),
]

CASES = [*CLUSTER_CASES, *GROUP_CASES, *TYPE_CASES]


@pytest.mark.parametrize("one", CASES, ids=str)
def test_breaks(one: Case) -> None:
    assert_breaks(RULES, one)


@pytest.mark.parametrize("one", CASES, ids=str)
def test_mended(one: Case) -> None:
    assert_mended(RULES, one)


def test_every_rule_is_broken_once() -> None:
    assert_complete(RULES, CASES)


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_shipped_environments_break_nothing(base: str) -> None:
    assert [one for one in found(RULES, {}, base) if not one.acknowledged] == []


def test_what_both_hyperpods_have_in_common_has_one_number() -> None:
    slurm = {rule.id[3:]: rule for rule in SLURM_RULES.rules}
    shared = [rule for rule in RULES.rules if rule.id[3:] in slurm]

    same = [rule for rule in shared if rule.check is slurm[rule.id[3:]].check]
    assert len(same) >= 20
    for rule in shared:
        # two rules that are not the same have numbers of their own, but for those below
        other = slurm[rule.id[3:]]
        assert rule.check is other.check or rule.id in OWN, rule.id
        assert rule.kinds == {"hyperpod-eks"}
        assert other.kinds == {"hyperpod-slurm"}


OWN = {"HPE001", "HPE002", "HPE003", "HPE004", "HPE005", "HPE006", "HPE049"} | {
    f"HPE{number:03d}" for number in (60, 61, 62, 63, 64, 65)
}
"""Numbers of which each set has a rule of its own; what 049 asks is asked of another image."""


def test_slurm_is_not_asked_of_kubernetes() -> None:
    found_codes = {one.code for one in check(loaded(environment_data(BASE)))}
    assert not {code for code in found_codes if code.startswith("HPS")}


CAPACITIES: dict[str, Any] = {
    "on-demand": OnDemand(),
    "spot": Spot(kind="spot"),
    "reservation": Reservation(kind="reservation", id="cr-0123456789abcdef0"),
    "capacity-block": CapacityBlock(kind="capacity-block", id="cr-0123456789abcdef0"),
    "training-plan": TrainingPlan(kind="training-plan", arn=PLAN_ARN),
}
OF_CAPACITY = {f"HPE{number:03d}" for number in (20, 21, 22, 24, 25, 26)}


@pytest.mark.parametrize(
    "name", ["p5.48xlarge", "g6e.12xlarge", "m5.4xlarge", "p6e-gb200.36xlarge", "trn2.48xlarge"]
)
@pytest.mark.parametrize("kind", CAPACITIES)
def test_the_rules_say_what_the_table_of_capacity_says(kind: str, name: str) -> None:
    changes = {TYPE: name, f"{TRAIN}.capacity": CAPACITIES[kind].model_dump(exclude_none=True)}
    said = {(one.code, one.severity) for one in found(RULES, changes, BASE) if one.code in OF_CAPACITY}
    known = instance_type(name)
    assert known
    decision = decide(CAPACITIES[kind], orchestrator="hyperpod-eks", placement="none", instance_type=known)

    assert said == ({(decision.rule, decision.severity)} if not decision.legal else set())


def test_a_p5_node_takes_81_addresses() -> None:
    budget = address_budget(loaded(environment_data(BASE)).environment)
    (row,) = [row for row in budget.rows if row.what.startswith("train ")]
    full = changed(environment_data(BASE), {f"{TRAIN}.efa_interface": ...})
    (certain,) = [
        row for row in address_budget(loaded(full).environment).rows if row.what.startswith("train ")
    ]

    assert (row.each, row.count) == (81, 4)
    assert (certain.each, certain.certain) == (81, 81)


def test_mig_profiles_are_those_that_quotas_can_name() -> None:
    """B300 is newer than AWS's list, and every other GPU's profiles are in it, and nothing more."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    named = {one.removeprefix("mig-") for one in model.shape_for("MIGProfileType").enum}
    ours = {
        profile
        for known in instance_types().values()
        if known.accelerator and known.accelerator.name != "B300"
        for profile in mig_profiles(known)
    }

    assert ours == named


def test_the_agent_is_looked_for_in_regions_that_exist() -> None:
    assert set(health_agent_regions()) <= set(regions())
    for name in health_agent_regions():
        assert re.fullmatch(
            rf"\d{{12}}\.dkr\.ecr\.{name}\.amazonaws\.com/[a-z-]+:[\w.]+", health_agent_image(name)
        )


@pytest.mark.parametrize("release", kubernetes_releases())
def test_every_release_of_the_control_plane_has_images_and_addons(release: str) -> None:
    everything = {
        "orchestrator.kubernetes_version": release,
        "orchestrator.scheduler": "none",
        "orchestrator.task_governance": True,
        "orchestrator.observability": {
            "workspace_arn": "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678"
        },
    }
    codes = {one.code for one in found(RULES, everything, BASE)}
    assert not codes & {"HPE002", "HPE003", "HPE004"}


def test_mig_profiles_fit_their_gpu() -> None:
    for known in instance_types().values():
        for profile, count in mig_profiles(known).items():
            slices, memory = map(int, re.findall(r"\d+", profile))
            assert known.accelerator
            gpu_gb = known.accelerator.memory_gib / known.accelerator.count * 1.08
            assert slices * count <= 7, (known.name, profile)
            assert memory * count <= gpu_gb * 1.02, (known.name, profile)
