"""What an environment is billed for, and how much of it."""

from __future__ import annotations

from typing import Any

import pytest
from cost_support import environment, estimated, line
from project import ROOT

from ultracluster.catalog import instance_type
from ultracluster.catalog.quotas import quota
from ultracluster.config import Environment, load
from ultracluster.config.nodes import NodeGroup
from ultracluster.model import resolve
from ultracluster.model.quota_needs import needs
from ultracluster.plan.billed import billed

NETWORK = ["nat", "ipv4"]
FAST = ["ebs.gp3", "ebs.gp3-throughput", "ebs.gp3-iops"]
"""Root volumes of nodes with accelerators."""
BILLED = {
    "dev": [
        "hyperpod.m5.2xlarge", "hyperpod-volume", "hyperpod.m5.xlarge", "hyperpod-volume",
        "hyperpod.g6e.12xlarge", "hyperpod-volume", "lustre.persistent-2-ssd.250", *NETWORK, "kms.key",
    ],
    "prod": [
        "hyperpod.m5.4xlarge", "hyperpod-volume", "hyperpod.m5.2xlarge", "hyperpod-volume",
        "training-plan.p5en.48xlarge", "hyperpod-volume", "lustre.persistent-2-ssd.500",
        "lustre.persistent-2-ssd.metadata", "openzfs.single-az-ha-2.storage",
        "openzfs.single-az-ha-2.throughput", "rds.mysql-multi-az.m7g.large", "rds.storage-multi-az",
        "endpoint", "kms.key", "secret", "amp.samples", "amp.storage", "amg.editor",
    ],
    "hyperpod-eks-p5": [
        "ec2.m5.2xlarge", "ebs.gp3", "training-plan.p5.48xlarge", "eks.standard",
        "lustre.persistent-2-ssd.500", "lustre.persistent-2-ssd.metadata", *NETWORK, "kms.key",
        "amp.samples", "amp.storage",
    ],
    "eks-p5en": [
        "ec2.m5.2xlarge", "ebs.gp3", "capacity-block.p5en.48xlarge", *FAST, "eks.standard",
        "lustre.persistent-2-ssd.500", "lustre.persistent-2-ssd.metadata", "openzfs.single-az-ha-2.storage",
        "openzfs.single-az-ha-2.throughput", *NETWORK, "kms.key",
    ],
    "parallelcluster-p5": [
        "ec2.m7i.4xlarge", "ebs.gp3", "ec2.m7i.xlarge", "ebs.gp3", "ec2.p5.48xlarge", *FAST,
        "ec2.p5.48xlarge", *FAST, "lustre.persistent-2-ssd.125", "openzfs.single-az-2.storage",
        "openzfs.single-az-2.throughput", "rds.mysql.m7g.large", "rds.storage", *NETWORK, "nlb", "kms.key",
        "secret", "cloudwatch.dashboard", "cloudwatch.alarm",
    ],
    "pcs-p6-b200": [
        "ec2.m7i.2xlarge", "ebs.gp3", "capacity-block.p6-b200.48xlarge", *FAST, "pcs.controller.small",
        "pcs.node", "pcs.accounting", "lustre.persistent-2-ssd.250", "lustre.persistent-2-ssd.metadata",
        "openzfs.single-az-ha-2.storage", "openzfs.single-az-ha-2.throughput", *NETWORK, "kms.key",
    ],
}  # fmt: skip


@pytest.mark.parametrize("base", BILLED)
def test_everything_that_is_billed(base: str) -> None:
    items = [item for item in billed(resolve(environment(base))) if item.area != "by use"]

    assert [item.key for item in items] == BILLED[base]


THEIRS = {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}
CHANGES: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    # the parts of an environment that exist cost nothing here
    ("dev", {"network.vpc": THEIRS}, {"nat": 0, "ipv4": 0, "kms.key": 1}),
    ("dev", {"storage.key": {"arn": "arn:aws:kms:us-west-2:111122223333:key/x"}}, {"kms.key": 1}),
    ("dev", {"network.egress": "closed"}, {"nat": 0, "ipv4": 0, "endpoint": 10}),
    ("dev", {"network.extra_endpoints": ["athena"]}, {"nat": 1, "endpoint": 1}),
    ("dev", {"storage.lustre": None}, {"lustre.persistent-2-ssd.250": 0}),
    (
        "dev",
        {"storage.lustre": {"deployment": "scratch-2", "capacity_gib": 2400}},
        {"lustre.scratch-2": 2400},
    ),
    (
        "dev",
        {
            "storage.lustre": {
                "deployment": "persistent-1-hdd", "capacity_gib": 6000, "throughput_mbps_per_tib": 12,
                "drive_cache": "read",
            }
        },
        {"lustre.persistent-1-hdd.12-cached": 6000},
    ),
    (
        "dev",
        {
            "storage.lustre": {
                "deployment": "intelligent-tiering", "throughput_mbps": 8000, "metadata_iops": 6000,
                "read_cache": {"mode": "sized", "gib": 512},
            }
        },
        {
            "lustre.intelligent-tiering.throughput": 8000,
            "lustre.intelligent-tiering.metadata": 6000,
            "lustre.intelligent-tiering.cache": 512,
        },
    ),
    ("parallelcluster-p5", {"storage.accounting_database": None}, {"rds.mysql.m7g.large": 0, "secret": 0}),
    (
        "parallelcluster-p5",
        {"node_groups.data": {"role": "login", "instance_type": "m7i.xlarge", "count": 0}},
        {"nlb": 2},
    ),
    (
        "parallelcluster-p5",
        {"orchestrator.monitoring": {"dashboard": False, "alarms": False}},
        {"cloudwatch.dashboard": 0, "cloudwatch.alarm": 0},
    ),
    ("eks-p5en", {"orchestrator.scaling_tier": "2xl"}, {"eks.standard": 1, "eks.tier.2xl": 1}),
    ("eks-p5en", {"orchestrator.capabilities": {"kro": True}}, {"eks.capability.kro": 1}),
    ("pcs-p6-b200", {"orchestrator.size": ...}, {"pcs.controller.small": 1, "pcs.node": 6}),
    ("pcs-p6-b200", {"orchestrator.accounting": {"mode": "none"}}, {"pcs.accounting": 0}),
    ("dev", {"node_groups.gpu.count": 5}, {"hyperpod.g6e.12xlarge": 5}),
]  # fmt: skip


@pytest.mark.parametrize(("base", "changes", "quantities"), CHANGES)
def test_quantities(base: str, changes: dict[str, Any], quantities: dict[str, float]) -> None:
    items = list(billed(resolve(environment(base, changes))))

    assert {key: sum(one.quantity for one in items if one.key == key) for key in quantities} == quantities


def test_karpenter_fills_empty_groups() -> None:
    changes = {
        "orchestrator.autoscaling": {"max_nodes": 6},
        "node_groups.train.count": 0,
        "node_groups.train.capacity": {"kind": "on-demand"},
    }
    found = estimated("hyperpod-eks-p5", changes)

    item = line(found, "train: p5").item
    assert (item.quantity, item.greatest) == (0, 6)


def test_a_reservation_is_billed_whether_or_not_nodes_run() -> None:
    assert line(estimated("parallelcluster-p5"), "reserved: p5").item.note == (
        "billed whether or not nodes run in it"
    )


def test_endpoints_have_load_balancers_that_no_stack_makes() -> None:
    base = "hyperpod-eks-p5"
    asked = {"orchestrator.inference": {}}
    plain, serving = (
        {item.what for item in billed(resolve(environment(base, changes))) if item.area == "by use"}
        for changes in ({}, asked)
    )
    assert serving - plain == {
        "a load balancer for each endpoint or gateway of the inference operator",
        "S3: certificates of endpoints",
    }


def test_what_another_team_lends_is_billed_while_nodes_run() -> None:
    lent = {"kind": "reservation", "id": "cr-0123456789abcdef0", "interruptible": True}
    changes = {
        "node_groups.train.capacity": lent,
        "node_groups.train.count": 0,
        "node_groups.train.max_count": 4,
    }
    item = line(estimated("pcs-p6-b200", changes), "train: p6-b200").item
    assert (item.quantity, item.greatest) == (0, 4)
    assert "its owner pays for what stands idle" in item.note


def test_the_lustre_of_restricted_groups_is_billed() -> None:
    shared = {
        "orchestrator.restricted_lustre": {"capacity_gib": 2400, "throughput_mbps_per_tib": 125},
        "node_groups.tune.restricted.lustre": ...,
    }
    for changes, size, speed in (({}, 4800, 250), (shared, 2400, 125)):
        items = billed(resolve(environment("wishes/restricted-groups", changes)))
        (found,) = (one for one in items if one.what.startswith("Lustre of"))
        assert (found.quantity, found.key) == (size, f"lustre.persistent-2-ssd.{speed}")
        assert "0 nodes" in found.note


FILES = [*(ROOT / "environments").glob("*.yaml"), *(ROOT / "environments/wishes").glob("*.yaml")]


def _has_second_volume(environment: Environment, group: NodeGroup) -> bool:
    """HyperPod's image for EKS makes the data volume of the local disks; of a restricted group's, AWS says
    nothing."""
    if not environment.orchestrator.kind.startswith("hyperpod") or group.role == "system":
        return False
    if environment.orchestrator.kind == "hyperpod-slurm" or group.restricted or group.volume_gib:
        return True
    types = [instance_type(name) for name in (group.instance_type, *group.instance_types)]
    return not all(kind and kind.local_nvme_disks for kind in types)


def test_a_second_volume_is_billed_where_the_local_disks_are_not_mounted_in_its_place() -> None:
    without: set[str] = set()
    for file in FILES:
        environment = load(file).environment
        items = {item.what: item for item in billed(resolve(environment))}
        for name, group in environment.node_groups.items():
            wanted = _has_second_volume(environment, group) and group.max_nodes > 0
            assert (f"{name}: second volumes" in items) == wanted, (file, name)
            if not wanted and environment.orchestrator.kind == "hyperpod-eks" and group.role == "compute":
                without.add(environment.name)
    assert "hyperpod-eks-p5" in without and "nova" not in without


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, None),
        ({"volume_gib": 800}, 800),
        ({"instance_type": "m5.2xlarge"}, 500),
        ({"instance_types": ("m5.2xlarge",)}, 500),  # a type without disks may come
    ],
)
def test_the_second_volume_of_hyperpod_with_eks(changes: dict[str, Any], size: int | None) -> None:
    base = load(ROOT / "environments/hyperpod-eks-p5.yaml").environment
    group = base.node_groups["train"].model_copy(update=changes)
    cluster = resolve(base.model_copy(update={"node_groups": {**base.node_groups, "train": group}}))
    volumes = [item.quantity for item in billed(cluster) if item.what == "train: second volumes"]
    assert volumes == ([] if size is None else [size * group.count])
    assert [need.amount for need in needs(cluster) if need.quota == quota("hyperpod-volume")] == (
        [] if size is None else [size]
    )
