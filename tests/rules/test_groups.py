"""Rules on node groups: each setting under an orchestrator that has it, and under one that does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from neuron_cases import GROUPS as ANNOUNCED
from rows import for_each
from rules_support import changed, environment_data, loaded
from rules_table import Case, found, table_tests

from ultracluster.catalog import instance_type
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM
from ultracluster.model import resolve
from ultracluster.rules import check
from ultracluster.rules.sets import GRP

KINDS = sorted(SLURM | KUBERNETES)
GPU = "node_groups.gpu"
VALUES: dict[str, Any] = {
    "placement_group": "none",
    "min_count": 2,
    "max_count": 4,
    "volume_gib": 600,
    "root_volume_gib": 300,
    "deep_health_checks": ["instance-stress"],
    "patching": {"kind": "when-idle"},
    "efa_interface": "efa",
    "partition": "gpu",
    "slurm_settings": {"Weight": 10},
    "labels": {"team": "a"},
    "taints": [{"key": "gpu", "effect": "NoSchedule"}],
    "instance_types": ["g6e.24xlarge"],
    "mig_layout": "all-balanced",
    "mig_profile": "1g.10gb",
    "gpu_time_slices": 4,
    "root_volume_throughput_mbps": 500,
    "root_volume_iops": 3000,
    "ena_express": "tcp",
    "image_release": "2.1.0",
    "zone_id": "usw2-az1",
    "restricted": {},
    "gres": [{"auto_detect": "nvml"}],
    "scaledown_seconds": 300,
}
HAVE = {
    "placement_group": {"parallelcluster", "pcs", "eks"},
    "min_count": HYPERPOD,
    "max_count": {"parallelcluster", "pcs", "eks"},
    "volume_gib": HYPERPOD,
    "root_volume_gib": {"parallelcluster", "pcs", "eks"},
    "root_volume_throughput_mbps": {"parallelcluster", "pcs", "eks"},
    "root_volume_iops": {"parallelcluster", "pcs", "eks"},
    "ena_express": {"pcs", "eks"},
    "image_release": HYPERPOD,
    "deep_health_checks": HYPERPOD,
    "patching": HYPERPOD,
    "efa_interface": HYPERPOD | {"eks"},
    "partition": SLURM,
    "slurm_settings": {"parallelcluster", "pcs"},
    "labels": KUBERNETES,
    "taints": KUBERNETES,
    "instance_types": {"hyperpod-eks"},
    "mig_layout": KUBERNETES | {"pcs"},
    "mig_profile": KUBERNETES | {"pcs"},
    "gpu_time_slices": {"eks"},
    "zone_id": HYPERPOD,
    "restricted": {"hyperpod-eks"},
    "gres": {"pcs"},
    "scaledown_seconds": {"pcs"},
}
SPOT = {"kind": "spot", "allocation": "capacity-optimized"}
BOTH = {
    "kind": "reservation",
    "id": "cr-0123456789abcdef0",
    "resource_group_arn": "arn:aws:resource-groups:us-west-2:111122223333:group/training",
}


PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/large"
TRAIN, SYSTEM = "node_groups.train", {"role": "system", "instance_type": "m5.2xlarge", "count": 2}
CONTROLLER = {"role": "controller", "instance_type": "m5.2xlarge", "count": 1}
GROUP = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "gpu"}
IMAGE, ID = "ami-0123456789abcdef0", "cr-0123456789abcdef0"
BLOCK = {"kind": "capacity-block", "id": ID}
ON_DEMAND: dict[str, Any] = {f"{TRAIN}.capacity": {"kind": "on-demand"}}
SCALED = {
    **ON_DEMAND,
    "orchestrator.autoscaling": {"max_nodes": 8},
    f"{TRAIN}.count": 0,
    f"{TRAIN}.min_count": ...,
    f"{TRAIN}.deep_health_checks": [],
}


def kind(name: str) -> dict[str, Any]:
    return {"orchestrator": {"kind": name}}


LOGIN = "node_groups.login"
CASES = [
    *ANNOUNCED,
    Case(
        "GRP001",
        {f"{LOGIN}.root_volume_iops": 3000},
        f"{LOGIN}.root_volume_iops",
        "those of ParallelCluster's login pools have a type",
        "remove root_volume_iops",
        {f"{LOGIN}.root_volume_iops": ...},
        base="parallelcluster-p5",
    ),
    Case(
        "GRP001",
        {"node_groups.train.zone_id": "use1-az1"},
        "node_groups.train.zone_id",
        "only HyperPod puts accelerators into another zone",
        "remove zone_id",
        {"node_groups.train.zone_id": ...},
        base="eks-p5en",
    ),
    Case(
        "GRP001",
        {"node_groups.train.restricted": {}},
        "node_groups.train.restricted",
        "only HyperPod on EKS has restricted instance groups",
        "remove restricted",
        {"node_groups.train.restricted": ...},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP001",
        {"node_groups.gpu.placement_group": "none"},
        "node_groups.gpu.placement_group",
        "HyperPod places its instances itself",
        "remove placement_group",
        {"node_groups.gpu.placement_group": ...},
    ),
    Case(
        "GRP001",
        {**kind("eks"), f"{GPU}.partition": "gpu"},
        f"{GPU}.partition",
        "this is Kubernetes",
        "labels",
        {f"{GPU}.partition": ...},
    ),
    Case(
        "GRP001",
        {**kind("pcs"), f"{GPU}.volume_gib": 600},
        f"{GPU}.volume_gib",
        "HyperPod's",
        "root_volume_gib",
        {f"{GPU}.volume_gib": ..., f"{GPU}.root_volume_gib": 600},
    ),
    Case(
        "GRP001",
        {f"{GPU}.slurm_settings": {"Weight": 1}},
        f"{GPU}.slurm_settings",
        "writes slurm.conf itself",
        "remove slurm_settings",
        {f"{GPU}.slurm_settings": {}},
    ),
    Case(
        "GRP002",
        {f"{GPU}.capacity": SPOT},
        f"{GPU}.capacity.allocation",
        "`allocation` has no effect on hyperpod-slurm",
        "remove allocation",
        kind("pcs"),
    ),
    Case(
        "GRP003",
        {**kind("pcs"), f"{GPU}.max_count": 1},
        f"{GPU}.max_count",
        "`max_count` is 1, but `count` is 2",
        "max_count: 2",
        {f"{GPU}.max_count": 2},
    ),
    Case(
        "GRP004",
        {**kind("pcs"), f"{GPU}.capacity": BOTH},
        f"{GPU}.capacity.resource_group_arn",
        "not by both",
        "remove resource_group_arn, or remove id",
        {f"{GPU}.capacity.id": ...},
    ),
    Case(
        "GRP004",
        {
            f"{TRAIN}.capacity": {
                "kind": "reservation",
                "resource_group_arn": BOTH["resource_group_arn"],
                "interruptible": True,
            }
        },
        f"{TRAIN}.capacity.resource_group_arn",
        "cannot be members of a resource group",
        "id: cr-",
        {f"{TRAIN}.capacity.resource_group_arn": ..., f"{TRAIN}.capacity.id": BOTH["id"]},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP004",
        {f"{TRAIN}.capacity": {"kind": "reservation", "interruptible": True}},
        f"{TRAIN}.capacity.interruptible",
        "targeted ones",
        "id: cr-",
        {f"{TRAIN}.capacity.id": BOTH["id"]},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP022",
        {"node_groups.login.capacity": {"kind": "reservation", "id": BOTH["id"], "interruptible": True}},
        "node_groups.login.capacity",
        "Its owner takes a reservation back",
        "on-demand",
        {"node_groups.login.capacity.interruptible": False},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP001",
        {f"{GPU}.gres": [{"auto_detect": "nvml"}]},
        f"{GPU}.gres",
        "only PCS takes lines of gres.conf",
        "remove gres",
        {f"{GPU}.gres": []},
    ),
    Case(
        "GRP001",
        {f"{TRAIN}.scaledown_seconds": 300},
        f"{TRAIN}.scaledown_seconds",
        "only PCS ends idle nodes",
        "remove scaledown_seconds",
        {f"{TRAIN}.scaledown_seconds": ...},
        base="eks-p5en",
    ),
    Case(
        "GRP010",
        {"node_groups.login.role": "system"},
        "node_groups.login.role",
        "Kubernetes",
        "role: login",
        {"node_groups.login.role": "login"},
    ),
    Case(
        "GRP010",
        {"node_groups.head": {"role": "controller", "instance_type": "m5.2xlarge", "count": 1}},
        "node_groups.head.role",
        "runs Slurm's controller itself",
        "remove node_groups.head",
        {"node_groups.head": ...},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP010",
        {"node_groups.head": {**SYSTEM, "role": "controller"}},
        "node_groups.head.role",
        "runs the control plane itself",
        "role: system",
        {"node_groups.head": SYSTEM},
        base="eks-p5en",
    ),
    Case(
        "GRP011",
        {"node_groups.controller": ...},
        "node_groups",
        "no group has the role `controller`",
        "role: controller",
        {"node_groups.controller": CONTROLLER},
    ),
    Case(
        "GRP012",
        {"node_groups.controller.count": 0},
        "node_groups.controller.count",
        "never become ready",
        "1",
        {"node_groups.controller.count": 1},
    ),
    Case(
        "GRP017",
        {"node_groups.gpu": ...},
        "node_groups",
        "cannot run a job",
        "role: compute",
        {"node_groups.gpu": GROUP},
    ),
    Case(
        "GRP017",
        {"node_groups.train.count": 0},
        "node_groups.train.count",
        "cannot run a job",
        "count: 1",
        {"node_groups.train.max_count": 4},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP017",
        {f"{TRAIN}.count": 0},
        f"{TRAIN}.count",
        "cannot run a job",
        "count: 1",
        SCALED,
        base="hyperpod-eks-p5",
    ),
    Case(
        "GRP020",
        {
            f"{TRAIN}.capacity": {
                "kind": "training-plan",
                "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/spring",
            }
        },
        f"{TRAIN}.capacity",
        "pcs launches from EC2",
        "kind: capacity-block",
        {f"{TRAIN}.capacity": BLOCK},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP021",
        {"node_groups.login.capacity": BLOCK},
        "node_groups.login.capacity",
        "Capacity Blocks are sold for m7i.2xlarge",
        "kind: reservation",
        {"node_groups.login.capacity": {"kind": "reservation", "id": ID}},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP025",
        {
            "region": "eu-north-1",
            "network.zone_id": "eun1-az1",
            "orchestrator.second_zone_id": "eun1-az2",
            "node_groups.system.instance_type": "m6a.2xlarge",
        },
        "node_groups.system.instance_type",
        "of m6a.2xlarge is known in eu-north-1",
        "available in eu-north-1",
        {"node_groups.system.instance_type": "m7i.2xlarge"},
        base="hyperpod-eks-p5",
    ),
    Case(
        "GRP026",
        {
            "region": "us-east-1",
            "network.zone_id": "use1-az3",
            "node_groups.login.instance_type": "c7g.2xlarge",
        },
        "node_groups.login.instance_type",
        "c7g.2xlarge was seen in use1-az1",
        "network.zone_id: use1-az",
        {"network.zone_id": "use1-az6"},
    ),
    Case(
        "GRP026",
        {"region": "us-east-1", "network.zone_id": "use1-az6", f"{GPU}.instance_type": "p6e-gb200.36xlarge"},
        f"{GPU}.instance_type",
        "not in use1-az6",
        "only Local Zones have it (use1-dfw2-az1)",
        {f"{GPU}.instance_type": "p5.48xlarge"},
    ),
    Case(
        "GRP028",
        {
            f"{TRAIN}.capacity": BLOCK,
            f"{TRAIN}.count": 40,
            "node_groups.more": {
                "role": "compute",
                "instance_type": "p5en.48xlarge",
                "count": 25,
                "capacity": BLOCK,
            },
        },
        "node_groups.more.capacity",
        "65 nodes of train, more together",
        "at most 64 nodes",
        {"node_groups.more.count": 24},
        base="eks-p5en",
    ),
    Case(
        "GRP024",
        {"acknowledge": []},
        f"{TRAIN}.capacity",
        "has no instances before it begins: creating the group would wait for 8",
        'starts: "',
        {f"{TRAIN}.capacity": {**BLOCK, "starts": "2027-01-05T11:30:00Z"}},
        base="eks-p5en",
    ),
    Case(
        "GRP024",
        {"acknowledge": []},
        f"{TRAIN}.capacity",
        "would wait for 4 nodes, fail",
        "count: 0 and max_count: 4",
        {f"{TRAIN}.count": 0, f"{TRAIN}.max_count": 4},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP035",
        {f"{TRAIN}.capacity": {**BLOCK, "starts": "2026-01-05T11:30:00Z"}},
        f"{TRAIN}.capacity.starts",
        "is in the past: a new group",
        "remove starts",
        {f"{TRAIN}.capacity": {**BLOCK, "starts": "2099-01-05T11:30:00Z"}},
        base="eks-p5en",
    ),
    Case(
        "GRP023",
        {f"{TRAIN}.instance_type": "p5e.48xlarge", f"{TRAIN}.capacity": {"kind": "on-demand"}},
        f"{TRAIN}.capacity",
        "No on-demand price of p5e.48xlarge is known, whatever",
        "kind: capacity-block",
        {f"{TRAIN}.capacity": BLOCK},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP023",
        {f"{GPU}.instance_type": "p5e.48xlarge"},
        f"{GPU}.capacity",
        "neither of HyperPod nor of EC2",
        "kind: training-plan",
        {f"{GPU}.instance_type": "trn2.48xlarge"},  # HyperPod has a price of its own
    ),
    Case(
        "GRP023",
        {f"{GPU}.instance_type": "p6e-gb200.36xlarge"},
        f"{GPU}.capacity",
        "HyperPod gets by training plans",
        "a plan of UltraServers",
        {f"{GPU}.capacity": {"kind": "training-plan", "arn": PLAN}},
    ),
    Case(
        "GRP023",
        {f"{TRAIN}.instance_types": ["p5.48xlarge", "p5e.48xlarge"], f"{TRAIN}.capacity": ...},
        f"{TRAIN}.capacity",
        "p5e.48xlarge",
        "kind: training-plan",
        {f"{TRAIN}.instance_types": ["p5.48xlarge"]},
        base="hyperpod-eks-p5",
    ),
    Case(
        "GRP022",
        {"node_groups.controller.capacity": {"kind": "spot"}},
        "node_groups.controller.capacity",
        "losing a controller node stops the queue",
        "on-demand",
        {"node_groups.controller.capacity": ...},
    ),
    Case(
        "GRP031",
        {
            **ON_DEMAND,
            f"{TRAIN}.instance_type": "g5.48xlarge",
            f"{TRAIN}.threads_per_core": 1,
        },
        "node_groups.train.threads_per_core",
        "unknown or cannot be set",
        "remove threads_per_core",
        {"node_groups.train.threads_per_core": ...},
        base="pcs-p6-b200",
    ),
    Case(
        "GRP031",
        {
            **ON_DEMAND,
            f"{TRAIN}.instance_type": "g6e.48xlarge",
            f"{TRAIN}.instance_types": ["g7.48xlarge"],
            f"{TRAIN}.threads_per_core": 2,
        },
        f"{TRAIN}.threads_per_core",
        "on g7.48xlarge, which takes 1",
        "remove threads_per_core",
        {f"{TRAIN}.instance_types": []},
        base="hyperpod-eks-p5",
    ),
    Case(
        "GRP038",
        {"orchestrator.deploy_with": "pcluster", "node_groups.reserved.image": "/images/mine"},
        "node_groups.reserved.image",
        "the file of the pcluster command takes nothing but the id of an AMI",
        "deploy_with: cloudformation",
        {"orchestrator.deploy_with": "cloudformation"},
        base="parallelcluster-p5",
    ),
    Case(
        "GRP033",
        {f"{GPU}.instance_type": "p6e-gb200.36xlarge"},
        "node_groups.login.instance_type",
        "m5.xlarge is x86_64, and `gpu` is arm64",
        "m7g.xlarge",
        {"node_groups.login.instance_type": "m7g.xlarge"},
    ),
    Case(
        "GRP033",
        {"node_groups.arm": {**GROUP, "instance_type": "c7g.16xlarge", "partition": "arm"}},
        "node_groups.arm.instance_type",
        "c7g.16xlarge is arm64, and `gpu` is x86_64",
        "a second environment",
        {"node_groups.arm.instance_type": "c6i.16xlarge"},
    ),
]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


@for_each("orchestrator", KINDS)
@for_each("setting", VALUES)
def test_a_setting_is_refused_where_its_orchestrator_is_not(setting: str, orchestrator: str) -> None:
    changes = {**kind(orchestrator), f"{GPU}.partition": ..., f"{GPU}.{setting}": VALUES[setting]}
    refused = {one.dotted for one in found(GRP, changes) if one.code == "GRP001"}
    assert refused == (set() if orchestrator in HAVE[setting] else {f"{GPU}.{setting}"})


def test_eks_launches_the_system_groups_of_hyperpod() -> None:
    system = {**kind("hyperpod-eks"), f"{GPU}.partition": ..., f"{GPU}.role": "system"}

    def settings(more: dict[str, Any]) -> list[str]:
        return [one.dotted for one in found(GRP, {**system, **more}) if one.code == "GRP001"]

    assert settings({f"{GPU}.root_volume_gib": 300}) == []
    assert settings({f"{GPU}.deep_health_checks": ["instance-stress"]}) == [f"{GPU}.deep_health_checks"]


def test_every_setting_of_a_group_was_thought_of() -> None:
    """A new field is either every orchestrator's, or in the table of the rule."""
    for_all = {"role", "instance_type", "count", "capacity", "threads_per_core", "image", "lifecycle_steps"}
    assert set(NodeGroup.model_fields) == for_all | set(VALUES)


def test_rules_of_one_orchestrator_are_silent_elsewhere() -> None:
    data = changed(environment_data(), kind("pcs"))
    assert not [one for one in check(loaded(data)) if one.code.startswith("HPS")]


@pytest.mark.parametrize("base", ["dev", "hyperpod-eks-p5"])
def test_a_reservation_named_twice_is_reported_on_hyperpod_too(base: str) -> None:
    """Where its capacity comes from cannot be told then: no rule but the one on the names speaks of it."""
    group = "gpu" if base == "dev" else "train"

    codes = {one.code for one in found(GRP, {f"node_groups.{group}.capacity": BOTH}, base)}

    assert codes == {"GRP004"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"node_groups.system.max_count": 1}, "GRP003"),
        ({"node_groups.system.capacity": BLOCK}, "GRP021"),
        (
            {"node_groups.system.instance_type": "g5.48xlarge", "node_groups.system.threads_per_core": 1},
            "GRP031",
        ),
    ],
)
def test_system_groups_of_hyperpod_are_held_to_what_eks_launches(changes: dict[str, Any], code: str) -> None:
    assert code in {one.code for one in found(GRP, changes, "hyperpod-eks-p5")}


def test_a_group_is_judged_without_a_file() -> None:
    cluster = resolve(
        loaded(
            changed(environment_data(), {f"{GPU}.threads_per_core": 2, f"{GPU}.capacity": BOTH})
        ).environment
    )

    findings = check(replace(cluster.groups["gpu"], type=instance_type("g7.48xlarge")))

    assert {(one.code, one.path) for one in findings if one.code.startswith("GRP")} == {
        ("GRP004", ("capacity", "resource_group_arn")),
        ("GRP031", ("threads_per_core",)),
    }


def test_nodes_that_are_always_there_are_deployed_when_their_block_begins() -> None:
    changes = {"acknowledge": [], f"{TRAIN}.role": "login", f"{TRAIN}.partition": ...}

    (finding,) = [one for one in found(GRP, changes, "pcs-p6-b200") if one.code == "GRP024"]

    assert not finding.remedy.options
    assert "deploy when it begins" in finding.instead
