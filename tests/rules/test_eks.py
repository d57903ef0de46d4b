"""Rules on Kubernetes on EKS, each broken and mended."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from rules_table import Case, assert_breaks, assert_complete, assert_mended, found

from ultracluster.catalog import instance_types
from ultracluster.catalog.eks import addons, ami_type, kubernetes_releases, node_image_release
from ultracluster.compute.capacity import decide
from ultracluster.rules.eks import RULES
from ultracluster.rules.engine import run

BASE = "eks-p5en"
SYSTEM = {"role": "system", "instance_type": "m5.2xlarge", "count": 2}
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.96.0.0/16", "nat_gateway_id": "nat-0123456789abcdef0"}
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
IMAGE = "ami-0123456789abcdef0"
TRAIN = "node_groups.train"
ARM_TRAINIUM = {
    "vcpu": 144, "memory_gib": 960, "architecture": "arm64", "accelerator": "Trainium3", "accelerators": 4,
    "network_gbps": 1600, "network_cards": 17, "efa_interfaces": 8, "addresses": 17,
    "source": "announcement of the type",
}  # fmt: skip


def case(
    rule: str,
    broken: dict[str, Any],
    at: str,
    says: str,
    instead: str,
    mended: dict[str, Any],
    base: str = BASE,
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base)


CASES = [
    case(
        "EKS001",
        {"orchestrator.kubernetes_version": "1.32"},
        "orchestrator.kubernetes_version",
        "no EFA rules",
        '"1.33"',
        {"orchestrator.kubernetes_version": "1.33"},
    ),
    case(
        "EKS001",
        {"orchestrator.kubernetes_version": "1.36"},
        "orchestrator.kubernetes_version",
        "kubectl",
        '"1.35"',
        {"orchestrator.kubernetes_version": "1.35"},
    ),
    case(
        "EKS002",
        {"orchestrator.second_zone_id": ...},
        "orchestrator",
        "refuses a control plane in one zone",
        "use2-az1 or use2-az3",
        {"orchestrator.second_zone_id": "use2-az1"},
    ),
    case(
        "EKS002",
        {"orchestrator.second_zone_id": "use2-az2"},
        "orchestrator.second_zone_id",
        "network.zone_id, too",
        "use2-az1 or use2-az3",
        {"orchestrator.second_zone_id": "use2-az3"},
    ),
    case(
        "EKS002",
        {"orchestrator.control_plane_subnet_ids": SUBNETS},
        "orchestrator.control_plane_subnet_ids",
        "the VPC is made",
        "second_zone_id",
        {"orchestrator.control_plane_subnet_ids": ...},
    ),
    case(
        "EKS002",
        {"network.vpc": VPC},
        "orchestrator.second_zone_id",
        "which exists",
        "control_plane_subnet_ids",
        {"orchestrator.second_zone_id": ..., "orchestrator.control_plane_subnet_ids": SUBNETS},
    ),
    case(
        "EKS002",
        {
            "network.vpc": VPC,
            "orchestrator.second_zone_id": ...,
            "orchestrator.control_plane_subnet_ids": SUBNETS[:1],
        },
        "orchestrator.control_plane_subnet_ids",
        "two zones or more",
        "[subnet-..., subnet-...]",
        {"orchestrator.control_plane_subnet_ids": SUBNETS},
    ),
    case(
        "EKS003",
        {"orchestrator.second_zone_id": "use1-az1"},
        "orchestrator.second_zone_id",
        "us-east-1",
        "use2-az",
        {"orchestrator.second_zone_id": "use2-az1"},
    ),
    case(
        "EKS004",
        {"orchestrator.second_zone_id": "use2-az9"},
        "orchestrator.second_zone_id",
        "use2-az9",
        "use2-az",
        {"orchestrator.second_zone_id": "use2-az3"},
    ),
    case(
        "EKS005",
        {"orchestrator.service_cidr": "172.20.0.0/25"},
        "orchestrator.service_cidr",
        "/12 to /24",
        "172.20.0.0/16",
        {"orchestrator.service_cidr": "172.20.0.0/24"},
    ),
    case(
        "EKS005",
        {"orchestrator.service_cidr": "100.64.0.0/16"},
        "orchestrator.service_cidr",
        "outside 10.0.0.0/8",
        "172.20.0.0/16",
        {"orchestrator.service_cidr": "172.20.0.0/16"},
    ),
    case(
        "EKS005",
        {"orchestrator.service_cidr": "10.96.0.0/12"},
        "orchestrator.service_cidr",
        "overlaps the VPC",
        "172.20.0.0/16",
        {"orchestrator.service_cidr": "10.100.0.0/16"},
    ),
    case(
        "EKS006",
        {"orchestrator.endpoint": {"kind": "public", "cidrs": ["203.0.113.7/32", "0.0.0.0/0"]}},
        "orchestrator.endpoint.cidrs[1]",
        "4294967296 addresses",
        "kind: private",
        {"orchestrator.endpoint": {"kind": "public", "cidrs": ["203.0.113.7/32"]}},
    ),
    case(
        "EKS007",
        {"orchestrator.admins": []},
        "orchestrator",
        "nobody has an access entry",
        "admins: [",
        {"orchestrator.admins": ["arn:aws:iam::111122223333:role/a"]},
    ),
    case(
        "EKS008",
        {"storage.accounting_database": {"kind": "rds-mysql", "second_zone_id": "use2-az1"}},
        "storage.accounting_database",
        "no Slurm here",
        "remove",
        {"storage.accounting_database": ...},
    ),
    case(
        "EKS009",
        {"network.egress": "closed"},
        "orchestrator",
        "not reached",
        "chart_repository: oci://",
        {"orchestrator.chart_repository": "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts"},
    ),
    case(
        "EKS010",
        {"orchestrator.chart_values": {"dcgm-exporters": {}}},
        "orchestrator.chart_values.dcgm-exporters",
        "given to nothing",
        "dcgm-exporter",
        {"orchestrator.chart_values": {"dcgm-exporter": {}}},
    ),
    case(
        "EKS011",
        {"orchestrator.kubeflow_trainer": True, "orchestrator.jobset": False},
        "orchestrator.kubeflow_trainer",
        "JobSet is off",
        "jobset: true",
        {"orchestrator.jobset": True},
    ),
    case(
        "EKS012",
        {"orchestrator.support": "extended"},
        "orchestrator.support",
        "costs more",
        "standard",
        {"orchestrator.support": "standard"},
    ),
    case(
        "EKS020",
        {"node_groups.head": {**SYSTEM, "role": "controller"}},
        "node_groups.head.role",
        "runs the control plane itself",
        "role: system",
        {"node_groups.head": SYSTEM},
    ),
    case(
        "EKS020",
        {"node_groups.login": {**SYSTEM, "role": "login"}},
        "node_groups.login.role",
        "kubectl",
        "remove the group",
        {"node_groups.login": ...},
    ),
    case(
        "EKS021",
        {"node_groups.system": ...},
        "node_groups",
        "nowhere to run",
        "role: system",
        {"node_groups.system": SYSTEM},
    ),
    case(
        "EKS021",
        {"node_groups.system.count": 0},
        "node_groups",
        "waits in vain",
        "count: 2",
        {"node_groups.system.count": 2},
    ),
    case(
        "EKS022",
        {"node_groups.system.count": 1},
        "node_groups.system.count",
        "whenever it is replaced",
        "2",
        {"node_groups.system.count": 2},
    ),
    case(
        "EKS022",
        {"node_groups.system.instance_type": "g6e.12xlarge"},
        "node_groups.system.instance_type",
        "do not use",
        "m5.2xlarge",
        {"node_groups.system.instance_type": "m5.xlarge"},
    ),
    case(
        "EKS022",
        {"node_groups.system.capacity": {"kind": "spot"}},
        "node_groups.system.capacity",
        "when AWS says so",
        "on-demand",
        {"node_groups.system.capacity": {"kind": "on-demand"}},
    ),
    case(
        "EKS023",
        {f"{TRAIN}.labels": {"Team Name": "a"}},
        f"{TRAIN}.labels.Team Name",
        "63 letters",
        "Team-Name",
        {f"{TRAIN}.labels": {"Team-Name": "a"}},
    ),
    case(
        "EKS023",
        {f"{TRAIN}.labels": {"Example.com/team": "a"}},
        f'{TRAIN}.labels."Example.com/team"',
        "lower case",
        "example.com/team",
        {f"{TRAIN}.labels": {"example.com/team": "a"}},
    ),
    case(
        "EKS023",
        {f"{TRAIN}.labels": {"team": "vision and speech"}},
        f"{TRAIN}.labels.team",
        "the value",
        "vision-and-speech",
        {f"{TRAIN}.labels": {"team": ""}},
    ),
    case(
        "EKS024",
        {f"{TRAIN}.taints": [{"key": "-team", "effect": "NoSchedule"}]},
        f"{TRAIN}.taints[0].key",
        "begin and end with",
        "team",
        {f"{TRAIN}.taints": [{"key": "team", "effect": "NoSchedule"}]},
    ),
    case(
        "EKS024",
        {f"{TRAIN}.taints": [{"key": "team", "value": "a b", "effect": "NoSchedule"}]},
        f"{TRAIN}.taints[0].value",
        "the value",
        "a-b",
        {f"{TRAIN}.taints": [{"key": "team", "value": "a-b", "effect": "NoSchedule"}]},
    ),
    case(
        "EKS024",
        {f"{TRAIN}.taints": [{"key": "t", "value": v, "effect": "NoExecute"} for v in "ab"]},
        f"{TRAIN}.taints[1]",
        "stands 2 times",
        "keep one",
        {
            f"{TRAIN}.taints": [
                {"key": "t", "effect": "NoExecute"},
                {"key": "t", "effect": "NoSchedule"},
            ]
        },
    ),
    case(
        "EKS025",
        {f"{TRAIN}.labels": {f"label-{number}": "a" for number in range(51)}},
        f"{TRAIN}.labels",
        "51 labels",
        "50",
        {f"{TRAIN}.labels": {f"label-{number}": "a" for number in range(50)}},
    ),
    case(
        "EKS026",
        {f"{TRAIN}.labels": {"node-role.kubernetes.io/worker": "a"}},
        f'{TRAIN}.labels."node-role.kubernetes.io/worker"',
        "would be lies",
        "example.com/worker",
        {f"{TRAIN}.labels": {"nvidia.com/mig.config": "a"}},
    ),
    case(
        "EKS026",
        {f"{TRAIN}.labels": {"ultracluster/node-group": "a"}},
        f"{TRAIN}.labels.ultracluster/node-group",
        "whoever owns them",
        "example.com/node-group",
        {f"{TRAIN}.labels": {"example.com/node-group": "a"}},
    ),
    case(
        "EKS027",
        {"instance_types": {"trn3a.48xlarge": ARM_TRAINIUM}, f"{TRAIN}.instance_type": "trn3a.48xlarge"},
        f"{TRAIN}.instance_type",
        "arm64",
        "image: ami-",
        {f"{TRAIN}.image": IMAGE},
    ),
    case(
        "EKS028",
        {f"{TRAIN}.image": IMAGE},
        f"{TRAIN}.image",
        "EKS chooses it",
        "service_cidr",
        {"orchestrator.service_cidr": "172.20.0.0/16"},
    ),
    case(
        "EKS029",
        {f"{TRAIN}.count": 451},
        f"{TRAIN}.count",
        "may have 450",
        "450 in each of 2 groups",
        {f"{TRAIN}.count": 450},
    ),
    case(
        "EKS029",
        {f"node_groups.more{number}": SYSTEM for number in range(29)},
        "node_groups",
        "31 groups",
        "30",
        {"node_groups.more0": ...},
    ),
    case(
        "EKS030",
        {
            f"{TRAIN}.capacity": {
                "kind": "training-plan",
                "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/a",
            }
        },
        f"{TRAIN}.capacity",
        "eks launches from EC2",
        "capacity-block",
        {f"{TRAIN}.capacity": BLOCK},
    ),
    case(
        "EKS030",
        {f"{TRAIN}.instance_type": "p6e-gb200.36xlarge", f"{TRAIN}.capacity": {"kind": "on-demand"}},
        f"{TRAIN}.capacity",
        "UltraServers",
        "capacity-block",
        {f"{TRAIN}.capacity": BLOCK},
    ),
    case(
        "EKS031",
        {
            f"{TRAIN}.instance_type": "p5en.48xlarge",
            f"{TRAIN}.capacity": BLOCK,
            "node_groups.cpu": {**SYSTEM, "role": "compute", "capacity": BLOCK},
        },
        "node_groups.cpu.capacity",
        "No Region is known",
        "the type of the block",
        {"node_groups.cpu.capacity": {"kind": "on-demand"}},
    ),
    case(
        "EKS032",
        {
            f"{TRAIN}.capacity": {
                "kind": "reservation",
                "id": "cr-0123456789abcdef0",
                "resource_group_arn": "arn:aws:resource-groups:us-east-2:111122223333:group/a",
            }
        },
        f"{TRAIN}.capacity",
        "one of the two",
        "remove",
        {f"{TRAIN}.capacity": {"kind": "reservation", "id": "cr-0123456789abcdef0"}},
    ),
    case(
        "EKS033",
        {"orchestrator.gpu_plugin": "gpu-operator"},
        "orchestrator.gpu_plugin",
        "Neuron devices",
        "device-plugin",
        {"orchestrator.gpu_plugin": "device-plugin"},
        "eks-trn2",
    ),
    case(
        "EKS034",
        {"orchestrator.gpu_plugin": "none"},
        "orchestrator.gpu_plugin",
        "no pod gets a GPU",
        "device-plugin",
        {"orchestrator.gpu_plugin": "gpu-operator"},
    ),
    case(
        "EKS035",
        {"storage.lustre.efa": True, "orchestrator.lifecycle": "none"},
        "orchestrator.lifecycle",
        "without a word",
        "remove lifecycle",
        {"orchestrator.lifecycle": "user-data"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_broken(case: Case) -> None:
    assert_breaks(RULES, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_mended(case: Case) -> None:
    assert_mended(RULES, case)


def test_every_rule_has_a_case() -> None:
    assert_complete(RULES, CASES)


@pytest.mark.parametrize("name", ["eks-p5en", "eks-trn2"])
def test_shipped_environments_break_none(name: str) -> None:
    assert found(RULES, {}, name) == []


def test_slurm_is_no_concern_of_these_rules() -> None:
    assert found(RULES, {}, "dev") == []


def test_hyperpod_on_eks_is_judged_by_those_that_are_about_both() -> None:
    data = changed(environment_data(BASE), {
        "orchestrator": {"kind": "hyperpod-eks", "second_zone_id": "use2-az2", "admins": []},
        f"{TRAIN}.image": IMAGE,
    })  # fmt: skip
    codes = {one.code for one in run(RULES.rules, loaded(copy.deepcopy(data)))}

    assert {"EKS002", "EKS007"} <= codes
    assert not {"EKS028", "EKS030"} & codes  # images and capacity are HyperPod's own subject


@pytest.mark.parametrize(
    "known", [t for t in instance_types().values() if t.accelerator], ids=lambda t: t.name
)
def test_every_accelerated_type_has_an_image_with_its_driver(known: Any) -> None:
    kind = ami_type(known)

    assert kind
    assert ("NEURON" in kind) == (known.accelerator.manufacturer == "AWS")
    assert ("ARM" in kind) == (known.architecture == "arm64")
    assert "STANDARD" not in kind


def test_kinds_of_images_are_those_of_cloudformation() -> None:
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-2", "AWS::EKS::Nodegroup").schema
    ours = {ami_type(known) for known in instance_types().values()} - {None}

    assert len(ours) == 5 and ours <= set(schema["properties"]["AmiType"]["enum"])
    assert set(schema["properties"]["CapacityType"]["enum"]) >= {"ON_DEMAND", "SPOT", "CAPACITY_BLOCK"}


def test_versions_carry_their_kubernetes_release() -> None:
    import re

    from ultracluster.catalog.eks import addon_version

    for release in kubernetes_releases():
        assert re.fullmatch(rf"{re.escape(release)}\.\d+-2026\d{{4}}", node_image_release(release))
        assert addon_version("kube-proxy", release).startswith(f"v{release}.")
        for name in addons():
            assert re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", addon_version(name, release)), name
    with pytest.raises(KeyError):
        addon_version("vpc-cni", "1.20")


CAPACITIES = [
    {"kind": "on-demand"},
    {"kind": "spot"},
    {"kind": "reservation"},
    {"kind": "reservation", "id": "cr-0123456789abcdef0"},
    {"kind": "reservation", "id": "cr-0123456789abcdef0", "placement_group": "mine"},
    BLOCK,
    {"kind": "training-plan", "arn": "arn:aws:sagemaker:us-east-2:111122223333:training-plan/a"},
]


@pytest.mark.parametrize(
    "name", ["p5.48xlarge", "g6e.12xlarge", "m5.4xlarge", "p6e-gb200.36xlarge", "trn2.48xlarge"]
)
@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_rules_say_what_the_table_of_capacity_says(capacity: dict[str, str], name: str) -> None:
    changes = {f"{TRAIN}.instance_type": name, f"{TRAIN}.capacity": capacity}
    said = {
        (one.code, one.severity) for one in found(RULES, changes, BASE) if one.code in ("EKS030", "EKS031")
    }
    one = loaded(changed(environment_data(BASE), changes)).environment.node_groups["train"].capacity
    kind = "reservation-group" if "placement_group" in capacity else "none"
    decision = decide(one, orchestrator="eks", placement=kind, instance_type=instance_types()[name])

    assert said == (set() if decision.legal else {(decision.rule, decision.severity)})


def test_purchases_are_capacity_types_of_eks() -> None:
    from ultracluster.config.capacity import CapacityBlock, OnDemand, Spot

    known = instance_types()["p5.48xlarge"]
    said = [
        decide(capacity, orchestrator="eks", placement="none", instance_type=known).purchase
        for capacity in (OnDemand(), Spot(kind="spot"), CapacityBlock(**BLOCK))  # pyright: ignore[reportArgumentType]
    ]
    assert said == ["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]
