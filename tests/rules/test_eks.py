"""Rules on Kubernetes on EKS, each broken and mended."""

from __future__ import annotations

import copy
from datetime import date
from typing import Any

import pytest
from neuron_cases import EKS as NEURON
from rules_support import changed, environment_data, loaded
from rules_table import Case, found, table_tests
from serving_cases import SERVING_CASES

from ultracluster.catalog import instance_types
from ultracluster.catalog.eks import (
    addons,
    ami_type,
    kubectl_release,
    kubernetes_releases,
    node_image_date,
)
from ultracluster.catalog.eks_calendar import kubernetes_support, read_on, releases_in_standard_support
from ultracluster.catalog.hyperpod_eks import hyperpod_kubernetes_agreed
from ultracluster.catalog.images import Family, newest
from ultracluster.config.kubernetes import Eks, HyperPodEks, Karpenter, PublicEndpoint
from ultracluster.model import resolve
from ultracluster.model.capacity import decide
from ultracluster.model.inference import S3_DRIVER
from ultracluster.rules import check
from ultracluster.rules.eks import releases as eks_releases
from ultracluster.rules.engine import run
from ultracluster.rules.sets import EKS

BASE = "eks-p5en"
SYSTEM = {"role": "system", "instance_type": "m5.2xlarge", "count": 2}
MOUNTED, DATASETS = "orchestrator.mountpoint_s3", {"datasets": {"bucket": "example-datasets"}}
READER = "arn:aws:iam::111122223333:role/reader"
TAINT = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
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

OPERATOR = {"orchestrator.gpu_plugin": "gpu-operator"}
BURST = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 0, "max_count": 8}
# `node_groups` first: what comes after changes the group
KARPENTER: dict[str, Any] = {"node_groups.burst": BURST, "orchestrator.karpenter": {"groups": ["burst"]}}


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


RACK: dict[str, Any] = {
    "node_groups.rack": {"role": "compute", "instance_type": "p6e-gb200.36xlarge", "count": 2}
}
DRA: dict[str, Any] = {"orchestrator.efa_devices": "dra"}
GPUS_OF_DRIVER = {"dra-driver-nvidia-gpu": {"resources": {"gpus": {"enabled": True}}}}

CASES = [
    *NEURON,
    case(
        "EKS081",
        {**RACK, "orchestrator.kubernetes_version": "1.32", "orchestrator.support": "extended"},
        "orchestrator.kubernetes_version",
        "which EKS supports from Kubernetes 1.33 on",
        '"1.36"',
        {"orchestrator.kubernetes_version": "1.33"},
    ),
    case(
        "EKS082",
        {**DRA, "orchestrator.kubernetes_version": "1.33"},
        "orchestrator.kubernetes_version",
        "does not serve resource.k8s.io/v1",
        "or efa_devices: device-plugin",
        {"orchestrator.kubernetes_version": "1.34"},
    ),
    case(
        "EKS085",
        {**DRA, "node_groups.train.instance_type": "g6e.xlarge"},
        "orchestrator.efa_devices",
        "no compute group has EFA",
        "remove efa_devices",
        {"node_groups.train.instance_type": "g6e.12xlarge"},
    ),
    case(
        "EKS086",
        {
            "node_groups.train.instance_type": "p6e-gb200.36xlarge",
            "node_groups.train.mig_profile": "1g.23gb",
            "orchestrator.gpu_plugin": "gpu-operator",
        },
        "node_groups.train.mig_profile",
        "excludes MIG",
        "remove mig_profile",
        {"node_groups.train.mig_profile": ...},
    ),
    case(
        "EKS087",
        {**RACK, "orchestrator.node_image_release": "1.36.0-20251002"},
        "orchestrator.node_image_release",
        "this is one of 20251002",
        "the default is newer",
        {"orchestrator.node_image_release": "20251103"},
    ),
    case(
        "EKS088",
        {**RACK, "orchestrator.gpu_plugin": "none"},
        "orchestrator.gpu_plugin",
        "which others NVLink reaches",
        "device-plugin",
        {"orchestrator.gpu_plugin": "gpu-operator"},
    ),
    case(
        "EKS089",
        {"orchestrator.chart_values": GPUS_OF_DRIVER},
        "orchestrator.chart_values.dra-driver-nvidia-gpu.resources",
        "two pods would get the same GPU",
        "remove resources",
        {"orchestrator.gpu_plugin": "none"},
    ),
    case(
        "EKS090",
        {**RACK, "orchestrator.task_governance": True, "orchestrator.scheduler": "none"},
        "orchestrator.task_governance",
        "refuses jobs with claims",
        "compute_domains: false",
        {"orchestrator.compute_domains": False},
        base="hyperpod-eks-p5",
    ),
    case(
        "EKS001",
        {"orchestrator.kubernetes_version": "1.30"},
        "orchestrator.kubernetes_version",
        "EKS creates no cluster with it",
        '"1.36"',
        {"orchestrator.kubernetes_version": "1.31"},
    ),
    case(
        "EKS012",
        {"orchestrator.kubernetes_version": "1.32", "orchestrator.support": "extended"},
        "orchestrator.kubernetes_version",
        "several times as much per hour (`ultracluster cost` shows it), until EKS upgrades it",
        '"1.36"',
        {"orchestrator.kubernetes_version": "1.35"},
    ),
    case(
        "EKS018",
        {
            "node_groups.system.taints": [TAINT],
            "orchestrator.chart_values": {"jobset": {"controller": {"tolerations": [{"key": "other"}]}}},
        },
        "orchestrator.chart_values.jobset.controller.tolerations",
        "`system` has dedicated=system:NoSchedule, which this list does not tolerate",
        "remove tolerations",
        {"orchestrator.chart_values": {"jobset": {"controller": {"tolerations": [{"operator": "Exists"}]}}}},
    ),
    case(
        "EKS018",
        {
            "node_groups.system.taints": [TAINT],
            "orchestrator.chart_values": {"jobset": {"controller": {"tolerations": []}}},
        },
        "orchestrator.chart_values.jobset.controller.tolerations",
        "wait forever",
        "the default list tolerates it",
        {"node_groups.more": SYSTEM},
    ),
    case(
        "EKS019",
        {"node_groups.system.taints": [TAINT]},
        "node_groups.system.taints",
        "amazon-sagemaker-hyperpod-training-operator",
        "remove taints",
        {"node_groups.more": SYSTEM},
        base="hyperpod-eks-p5",
    ),
    case(
        "EKS120",
        {"software.mirror": "s3://data/software", MOUNTED: {"all": {"bucket": "data", "write": True}}},
        f"{MOUNTED}.all.write",
        "which nodes install as root: every pod with the claim",
        "write: false",
        {f"{MOUNTED}.all.write": False},
    ),
    case(
        "EKS121",
        {MOUNTED: {"all": {"bucket": "data"}, "runs": {"bucket": "data", "prefix": "runs", "write": True}}},
        f"{MOUNTED}.runs",
        "s3://data/runs and s3://data overlap",
        "remove",
        {f"{MOUNTED}.all.prefix": "sets"},
    ),
    case(
        "EKS122",
        {MOUNTED: DATASETS, "node_groups.system.taints": [TAINT]},
        "node_groups.system.taints",
        "its controller tolerates dedicated=system:NoSchedule",
        "remove taints",
        {"node_groups.more": SYSTEM},
    ),
    case(
        "EKS123",
        {MOUNTED: DATASETS, "orchestrator.addon_versions": {S3_DRIVER: "v1.15.0-eksbuild.1"}},
        f"orchestrator.addon_versions.{S3_DRIVER}",
        "v2.0.0-eksbuild.1 is the first that does",
        "v2.7.0-eksbuild.1",
        {"orchestrator.addon_versions": {S3_DRIVER: "v2.0.0-eksbuild.1"}},
        base="hyperpod-eks-p5",
    ),
    case(
        "EKS124",
        {MOUNTED: DATASETS, "orchestrator.inference": {"model_reader_role_arn": READER}},
        "orchestrator.inference.model_reader_role_arn",
        "one driver mounts models and the volumes",
        "model_buckets",
        {"orchestrator.inference": {"model_buckets": ["models"]}},
        base="hyperpod-eks-p5",
    ),
    case(
        "EKS017",
        {"region": "us-east-1", "network.zone_id": "use1-az6", "orchestrator.second_zone_id": "use1-az3"},
        "orchestrator.second_zone_id",
        "EKS does not accept a subnet in use1-az3",
        "zone_id: use1-az1 or use1-az2",
        {"orchestrator.second_zone_id": "use1-az1"},
    ),
    case(
        "EKS017",
        {"region": "us-east-1", "network.zone_id": "use1-az3", "orchestrator.second_zone_id": "use1-az1"},
        "network.zone_id",
        "one is created for it in the zone of the nodes",
        "control_plane_subnet_ids",
        {
            "network.vpc": VPC,
            "orchestrator.second_zone_id": ...,
            "orchestrator.control_plane_subnet_ids": SUBNETS,
        },
    ),
    case(
        "EKS017",
        {
            "region": "us-east-1",
            "network.zone_id": "use1-dfw2-az1",
            "orchestrator.second_zone_id": "use1-az1",
        },
        "network.zone_id",
        "is a Local Zone, where EKS accepts no subnet",
        "use1-az4",
        {"network.further_zones": {"use1-az4": {"cidr": "10.96.128.0/20"}}},
    ),
    case(
        "EKS017",
        {"region": "us-east-1", "network.zone_id": "use1-az3", "orchestrator.second_zone_id": "use1-az1"},
        "network.zone_id",
        "EKS does not accept a subnet in use1-az3",
        "another zone in network.further_zones",
        {"network.further_zones": {"use1-az4": {"cidr": "10.96.128.0/20"}}},
    ),
    case(
        "EKS002",
        {
            "region": "us-east-1",
            "network.zone_id": "use1-dfw2-az1",
            "network.further_zones": {"use1-az4": {"cidr": "10.0.128.0/20"}},
            "orchestrator.second_zone_id": "use1-az4",
        },
        "orchestrator.second_zone_id",
        "`use1-az4` is the first zone that EKS takes, too",
        "second_zone_id: use1-az1",
        {"orchestrator.second_zone_id": "use1-az1"},
    ),
    case(
        "EKS002",
        {"orchestrator.second_zone_id": "use2-az2"},
        "orchestrator.second_zone_id",
        "network.zone_id, too",
        "second_zone_id: use2-az1",
        {"orchestrator.second_zone_id": "use2-az3"},
    ),
    case(
        "EKS002",
        {"orchestrator.control_plane_subnet_ids": SUBNETS},
        "orchestrator.control_plane_subnet_ids",
        "in another VPC than the one that is created",
        "remove control_plane_subnet_ids",
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
        "EKS105",
        {"orchestrator.endpoint": {"kind": "public", "cidrs": ["203.0.113.7/32", "10.0.0.0/8"]}},
        "orchestrator.endpoint.cidrs[1]",
        "no client has an address of 10.0.0.0/8 (private, RFC 1918)",
        "remove",
        {"orchestrator.endpoint": {"kind": "public", "cidrs": ["203.0.113.7/32"]}},
    ),
    case(
        "EKS105",
        {"orchestrator.endpoint": {"kind": "public", "cidrs": ["10.20.0.0/16"]}},
        "orchestrator.endpoint.cidrs[0]",
        "This entry lets nobody in",
        "kind: private",
        {"orchestrator.endpoint": {"kind": "private"}},
    ),
    case(
        "EKS107",
        {"orchestrator.kuberay": True, "orchestrator.scheduler": "volcano"},
        "orchestrator.kuberay",
        "no queue is known to start the pods of a RayJob together",
        "scheduler: kueue",
        {"orchestrator.scheduler": "kueue"},
    ),
    case(
        "EKS107",
        {"orchestrator.kuberay": True, "orchestrator.task_governance": True},
        "orchestrator.kuberay",
        "with `task-governance` no queue",
        "false",
        {"orchestrator.kuberay": False},
        "hyperpod-eks-p5",
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
        "AWS may end nodes from spot",
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
        "is given 2 times",
        "remove it",
        {
            f"{TRAIN}.taints": [
                {"key": "t", "effect": "NoExecute"},
                {"key": "t", "effect": "NoSchedule"},
            ]
        },
    ),
    case(
        "EKS026",
        {f"{TRAIN}.labels": {"node-role.kubernetes.io/worker": "a"}},
        f'{TRAIN}.labels."node-role.kubernetes.io/worker"',
        "the kubelet refuses labels below kubernetes.io/",
        "example.com/worker",
        {f"{TRAIN}.labels": {"nvidia.com/mig.config": "a"}},
    ),
    case(
        "EKS026",
        {f"{TRAIN}.labels": {"node.kubernetes.io/instance-type": "a"}},
        f'{TRAIN}.labels."node.kubernetes.io/instance-type"',
        "would be wrong",
        "example.com/instance-type",
        {f"{TRAIN}.labels": {"node.kubernetes.io/pool": "a", "x.kubelet.kubernetes.io/rack": "b"}},
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
        "EKS029",
        {f"{TRAIN}.count": 451},
        f"{TRAIN}.count",
        "may have 450",
        "count: 450",
        {f"{TRAIN}.count": 450},
    ),
    case(
        "EKS028",
        {**KARPENTER, f"{TRAIN}.image": IMAGE, "node_groups.burst.image": IMAGE},
        f"{TRAIN}.image",
        "EKS chooses it",
        "service_cidr",
        {f"{TRAIN}.image": ...},
    ),
    case(
        "EKS040",
        {f"{TRAIN}.labels": {"nvidia.com/mig.config": "all-1g.18gb"}},
        f'{TRAIN}.labels."nvidia.com/mig.config"',
        "is not checked",
        "mig_profile: 1g.18gb",
        {f"{TRAIN}.labels": {}, f"{TRAIN}.mig_profile": "1g.18gb"},
    ),
    case(
        "EKS041",
        {**OPERATOR, f"{TRAIN}.mig_profile": "1g.10gb"},
        f"{TRAIN}.mig_profile",
        "its profiles are 1g.18gb",
        "1g.18gb",
        {f"{TRAIN}.mig_profile": "1g.18gb"},
    ),
    case(
        "EKS042",
        {"orchestrator.gpu_plugin": "none", f"{TRAIN}.gpu_time_slices": 4},
        f"{TRAIN}.gpu_time_slices",
        "to several pods",
        "device-plugin",
        {"orchestrator.gpu_plugin": "device-plugin"},
    ),
    case(
        "EKS041",
        {**OPERATOR, f"{TRAIN}.mig_layout": {"1g.10gb": 2, "3g.40gb": 1}},
        f"{TRAIN}.mig_layout",
        "`1g.10gb` on p5en.48xlarge",
        "{1g.18gb: 2, 3g.71gb: 1}",
        {f"{TRAIN}.mig_layout": {"1g.18gb": 2, "3g.71gb": 1}},
    ),
    case(
        "EKS042",
        {f"{TRAIN}.mig_layout": "all-balanced"},
        f"{TRAIN}.mig_layout",
        "gpu_plugin is device-plugin",
        "gpu-operator",
        OPERATOR,
    ),
    case(
        "EKS106",
        {**OPERATOR, f"{TRAIN}.mig_layout": {"1g.18gb": 1, "3g.71gb": 2}},
        f"{TRAIN}.mig_layout",
        "1 x 1g.18gb, 2 x 3g.71gb have no place on one GPU",
        "mig_layout: {3g.71gb: 2}",
        {f"{TRAIN}.mig_layout": ..., f"{TRAIN}.mig_profile": "3g.71gb"},
    ),
    case(
        "EKS106",
        {**OPERATOR, f"{TRAIN}.mig_layout": [{"1g.18gb": 7}, {}]},
        f"{TRAIN}.mig_layout",
        "2 entries, and p5en.48xlarge has 8 GPUs",
        "mig_layout",
        {f"{TRAIN}.mig_layout": [{"1g.18gb": 7}, {}, {}, {}, {}, {}, {}, {}]},
    ),
    case(
        "EKS106",
        {**OPERATOR, f"{TRAIN}.mig_layout": "all-balanced", f"{TRAIN}.mig_profile": "1g.18gb"},
        f"{TRAIN}.mig_layout",
        "cuts the same GPUs",
        "remove mig_layout",
        {f"{TRAIN}.mig_layout": ...},
    ),
    case(
        "EKS044",
        {"node_groups.system.gpu_time_slices": 2},
        "node_groups.system.gpu_time_slices",
        "run no jobs",
        "remove gpu_time_slices",
        {"node_groups.system.gpu_time_slices": ...},
    ),
    case(
        "EKS044",
        {**OPERATOR, f"{TRAIN}.mig_profile": "1g.18gb", f"{TRAIN}.gpu_time_slices": 2},
        f"{TRAIN}.gpu_time_slices",
        "cannot be time-sliced as well",
        "mig_profile",
        {f"{TRAIN}.mig_profile": ...},
    ),
    case(
        "EKS044",
        {f"{TRAIN}.instance_type": "m5.4xlarge", f"{TRAIN}.gpu_time_slices": 2},
        f"{TRAIN}.gpu_time_slices",
        "no accelerator",
        "remove gpu_time_slices",
        {f"{TRAIN}.gpu_time_slices": ...},
    ),
    case(
        "EKS050",
        {"orchestrator.karpenter": {"groups": ["brust"]}, "node_groups.burst": BURST},
        "orchestrator.karpenter.groups[0]",
        "no node group `brust`",
        "burst",
        KARPENTER,
    ),
    case(
        "EKS050",
        {
            "orchestrator.karpenter": {"groups": ["burst", "Burst"]},
            "node_groups.burst": BURST,
            "node_groups.Burst": BURST,
        },
        "orchestrator.karpenter.groups[1]",
        "no capitals",
        "remove it",
        {"orchestrator.karpenter": {"groups": ["burst"]}},
    ),
    case(
        "EKS051",
        {
            **KARPENTER,
            "node_groups.burst": {**BURST, "instance_type": "p6e-gb200.36xlarge", "capacity": BLOCK},
        },
        "orchestrator.karpenter.groups[0]",
        "managed node groups only",
        "remove orchestrator.karpenter",
        {"orchestrator.karpenter": ...},
    ),
    case(
        "EKS052",
        {**KARPENTER, "node_groups.burst.max_count": ...},
        "node_groups.burst.count",
        "never start one",
        "max_count",
        {"node_groups.burst.max_count": 1},
    ),
    case(
        "EKS054",
        {**KARPENTER, "node_groups.burst.threads_per_core": 1},
        "node_groups.burst.threads_per_core",
        "multithreading",
        "remove threads_per_core",
        {"node_groups.burst.threads_per_core": ...},
    ),
    case(
        "EKS054",
        {
            **KARPENTER,
            "node_groups.burst.capacity": {
                "kind": "reservation",
                "resource_group_arn": "arn:aws:resource-groups:us-east-2:111122223333:group/a",
            },
        },
        "node_groups.burst.capacity.resource_group_arn",
        "never by resource group",
        "id: cr-",
        {"node_groups.burst.capacity": {"kind": "reservation", "id": "cr-0123456789abcdef0"}},
    ),
    case(
        "EKS056",
        {**KARPENTER, "node_groups.burst.capacity": {"kind": "reservation", "id": "cr-0fedcba9876543210"}},
        "orchestrator.karpenter.groups[0]",
        "was seen to treat such capacity as unavailable",
        "a managed node group takes reserved capacity",
        {"node_groups.burst.capacity": {"kind": "on-demand"}},
    ),
    case(
        "EKS057",
        {"orchestrator.mpi_operator": True, "orchestrator.pod_security": "restricted"},
        "orchestrator.pod_security",
        "SSH server of the acceptance job's workers is root",
        "pod_security: baseline",
        {"orchestrator.mpi_operator": False},
    ),
]


@pytest.fixture(autouse=True)
def that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: date(2026, 11, 20))


test_breaks_and_is_mended, test_advice_works = table_tests(cases=[*CASES, *SERVING_CASES])


@pytest.mark.parametrize(
    ("release", "on", "rules"),
    [
        ("1.36", date(2026, 11, 20), set()),
        ("1.35", date(2026, 11, 26), set()),
        ("1.35", date(2026, 11, 27), {"EKS014"}),
        ("1.34", date(2026, 12, 1), {"EKS014"}),
        ("1.34", date(2026, 12, 2), {"EKS012"}),
        ("1.34", date(2027, 12, 1), {"EKS012"}),
        ("1.34", date(2027, 12, 2), {"EKS001"}),
        ("1.31", date(2026, 11, 25), {"EKS012", "EKS015"}),
        ("1.31", date(2026, 11, 26), {"EKS001", "EKS015"}),
        ("1.36", date(2030, 1, 1), {"EKS001"}),
    ],
)
def test_what_is_said_of_a_release_depends_on_the_day(
    release: str, on: date, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: on)
    ours = {rule.id for rule in eks_releases.EKS.rules}

    said = {one.code for one in found(EKS, {"orchestrator.kubernetes_version": release}, BASE)}

    assert said & ours == rules


@pytest.mark.parametrize("kind", [Eks, HyperPodEks])
def test_the_default_release_is_the_newest_in_standard_support_with_images(
    kind: type[Eks] | type[HyperPodEks],
) -> None:
    family: Family = "hyperpod-eks" if kind is HyperPodEks else "eks-al2023-nvidia"
    lasting = [
        release
        for release in releases_in_standard_support(read_on())
        if all(newest(family=family, arch=arch, kubernetes=release) for arch in ("x86_64", "arm64"))
    ]
    if kind is HyperPodEks:  # of the newest AWS's pages disagree: HPE120
        lasting = [one for one in lasting if one <= hyperpod_kubernetes_agreed()]
    assert kind.model_fields["kubernetes_version"].default == lasting[-1]


@pytest.mark.parametrize(
    ("day", "told"), [("2026-11-27", False), ("2027-01-20", False), ("2027-02-01", True)]
)
def test_hyperpods_newest_agreed_release_is_told_of_later(
    day: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: date.fromisoformat(day))
    data = changed(environment_data("hyperpod-eks-p5"), {"orchestrator.kubernetes_version": "1.35"})
    assert ("EKS014" in {one.code for one in check(loaded(data))}) is told


def test_kubectl_may_speak_to_every_release_in_standard_support() -> None:
    ours = int(kubectl_release().partition(".")[2])
    assert all(abs(int(one.partition(".")[2]) - ours) <= 1 for one in releases_in_standard_support(read_on()))


def test_the_calendar_is_that_of_fourteen_and_twelve_months() -> None:
    """EKS User Guide: standard support is 14 months from the release on EKS, extended 12 more."""
    for release in kubernetes_releases():
        row = kubernetes_support(release)
        assert row
        assert 420 <= (row.standard_ends - row.on_eks).days <= 430, release
        assert row.extended_ends == row.standard_ends.replace(year=row.standard_ends.year + 1), release


def test_groups_of_karpenter_are_no_managed_node_groups() -> None:
    changes = {f"node_groups.more{number}": SYSTEM for number in range(28)}
    large = {"node_groups.burst.max_count": 451, "node_groups.burst.image": IMAGE}
    assert found(EKS, {**changes, **KARPENTER, **large}, BASE) == []


def test_settings_and_groups_are_judged_without_a_file() -> None:
    settings = Eks(
        kind="eks",
        endpoint=PublicEndpoint(kind="public", cidrs=("0.0.0.0/0",)),
        karpenter=Karpenter(groups=("burst",)),
        kubeflow_trainer=True,
        jobset=False,
        second_zone_id="use2-az2",
    )
    changes = {**KARPENTER, "node_groups.burst.labels": {"Team Name": "a"}, "node_groups.burst.count": 1}
    group = resolve(loaded(changed(environment_data(BASE), changes)).environment).groups["burst"]

    assert [(one.code, one.dotted) for one in check(settings)] == [
        ("EKS006", "endpoint.cidrs[0]"),
        ("EKS007", ""),
        ("EKS011", "kubeflow_trainer"),
    ]
    assert {("EKS023", ("labels", "Team Name")), ("EKS052", ("max_count",))} <= {
        (one.code, one.path) for one in check(group)
    }


def test_hyperpod_on_eks_is_judged_by_those_that_are_about_both() -> None:
    data = changed(environment_data(BASE), {
        "orchestrator": {"kind": "hyperpod-eks", "second_zone_id": "use2-az2", "admins": []},
        f"{TRAIN}.image": IMAGE,
    })  # fmt: skip
    codes = {one.code for one in run(EKS.rules, loaded(copy.deepcopy(data)))}

    assert {"EKS002", "EKS007"} <= codes
    assert "EKS028" not in codes  # images are HyperPod's own subject


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
        assert re.fullmatch(r"2026\d{4}", node_image_date(release))
        assert addon_version("kube-proxy", release).startswith(f"v{release}.")
        for name in addons():
            assert re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", addon_version(name, release)), name
    with pytest.raises(KeyError):
        addon_version("vpc-cni", "1.20")


def test_purchases_are_capacity_types_of_eks() -> None:
    from ultracluster.config.capacity import CapacityBlock, OnDemand, Spot

    known = instance_types()["p5.48xlarge"]
    said = [
        decide(capacity, orchestrator="eks", placement="none", instance_type=known).purchase
        for capacity in (OnDemand(), Spot(kind="spot"), CapacityBlock(**BLOCK))  # pyright: ignore[reportArgumentType]
    ]
    assert said == ["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]
