"""Odd environments that AWS's guides document: the smallest, the largest and the mixed are no error."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import EXISTING_DATABASE, OPENZFS, findings

Changes = dict[str, Any]

PCS_IMAGE = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"
TCP: Changes = {"storage.lustre.efa": False, "storage.lustre.gds": False}
VPC: Changes = {
    "zone_id": "usw2-az2",
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"},
    "subnet": {"id": "subnet-0123456789abcdef0", "cidr": "10.0.0.0/18"},
}


def compute(instance_type: str, count: int = 1, **more: Any) -> Changes:
    return {"role": "compute", "instance_type": instance_type, "count": count, **more}


def head(instance_type: str) -> Changes:
    return {"role": "controller", "instance_type": instance_type, "count": 1}


def further_lustre(number: int) -> Changes:
    """So many more file systems of the smallest size, each with a place of its own."""
    small = {"deployment": "persistent-2-ssd", "capacity_gib": 1200, "throughput_mbps_per_tib": 125}
    return {f"fs{n}": {**small, "efa": False, "mount_path": f"/fs{n}"} for n in range(number)}


ODD: dict[str, tuple[str, Changes]] = {
    # the smallest
    "one GPU node, no login node, no storage": (
        "dev",
        {"node_groups.login": ..., "node_groups.gpu.count": 1, "storage": ..., "tags": ...},
    ),
    "a single Trn1 node": ("dev", {"node_groups.gpu": compute("trn1.32xlarge", partition="trn1")}),
    "one GPU of P5": ("pcs-p6-b200", {"node_groups.train.instance_type": "p5.4xlarge", **TCP}),
    "PCS without login nodes": ("pcs-p6-b200", {"node_groups.login": ...}),
    "no storage on Kubernetes": ("eks-p5en", {"storage": ..., "acknowledge": ...}),
    "no storage on HyperPod with EKS": ("hyperpod-eks-p5", {"storage": ...}),
    "no nodes until a job asks": ("eks-p5en", {"node_groups.train": compute("g6e.12xlarge", 0, max_count=1)}),
    "one node of Inferentia2": ("eks-p5en", {"node_groups.train": compute("inf2.48xlarge")}),
    # the largest
    "the most nodes that PCS takes": (
        "pcs-p6-b200",
        {
            "orchestrator.size": "large",
            "node_groups.train": compute(
                "c7i.48xlarge", 0, max_count=1046, partition="train", image=PCS_IMAGE
            ),
            "node_groups.more": compute("c7i.48xlarge", 0, max_count=1000, partition="more", image=PCS_IMAGE),
            **TCP,
            "acknowledge": ...,
        },
    ),
    "fifty queues": (
        "parallelcluster-p5",
        {f"node_groups.q{number}": compute("g6e.12xlarge", 0, max_count=1) for number in range(48)},
    ),
    "the most nodes of one training plan": (
        "prod",
        {"node_groups.train.count": 64, "node_groups.train.min_count": 64},
    ),
    "five Lustre file systems": ("pcs-p6-b200", {"storage.further_lustre": further_lustre(4)}),
    "a whole UltraServer of GB200": ("parallelcluster-gb200", {}),
    "half an UltraServer": ("parallelcluster-gb200", {"node_groups.gb200.count": 9}),
    # the mixed
    "Spot only": (
        "parallelcluster-p5",
        {"node_groups.reserved.capacity": {"kind": "spot"}, "node_groups.more.capacity": {"kind": "spot"}},
    ),
    "GPUs of two kinds and Trainium on EKS": (
        "eks-p5en",
        {
            "node_groups.small": compute("g6e.12xlarge", 0, max_count=4),
            "node_groups.trn": compute("trn1.32xlarge"),
        },
    ),
    "Karpenter with Spot": (
        "eks-p5en",
        {
            "node_groups.train": compute("g6e.12xlarge", 0, max_count=10, capacity={"kind": "spot"}),
            "orchestrator.karpenter": {"groups": ["train"]},
            "acknowledge": ...,
        },
    ),
    "CPU nodes only": (
        "parallelcluster-p5",
        {
            "node_groups": {
                "head": head("m7i.4xlarge"),
                "cpu": compute("c7i.48xlarge", 0, max_count=100, partition="train"),
            }
        },
    ),
    "Graviton throughout": (
        "parallelcluster-p5",
        {
            "node_groups": {
                "head": head("m7g.4xlarge"),
                "cpu": compute("c7g.16xlarge", 0, max_count=10, partition="train"),
            }
        },
    ),
    "A100 of the first generation": ("dev", {"node_groups.gpu.instance_type": "p4d.24xlarge"}),
    "RTX PRO 4500 on EKS": (
        "eks-p5en",
        {"node_groups.train": compute("g7.48xlarge"), "software.release": "2026.11"},
    ),
    # storage, network, systems
    "an imported VPC": ("dev", {"network": VPC}),
    "OpenZFS only": ("dev", {"storage": {"openzfs": OPENZFS}}),
    "scratch storage": ("dev", {"storage.lustre": {"deployment": "scratch-2", "capacity_gib": 1200}}),
    "a database that exists": ("dev", {"storage.accounting_database": EXISTING_DATABASE}),
    "EKS without the internet": (
        "eks-p5en",
        {
            "network.egress": "closed",
            "orchestrator.chart_repository": "oci://111122223333.dkr.ecr.us-east-2.amazonaws.com/charts",
        },
    ),
    "Tokyo": ("dev", {"region": "ap-northeast-1", "network.zone_id": "apne1-az4"}),
    "GovCloud": ("dev", {"region": "us-gov-west-1", "network.zone_id": "usgw1-az1"}),
    "Red Hat's system": ("parallelcluster-p5", {"orchestrator.os": "rhel9"}),
    "Amazon Linux": ("parallelcluster-p5", {"orchestrator.os": "alinux2023"}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_environment_is_no_error(name: str) -> None:
    base, changes = ODD[name]
    errors = [one for one in findings(changes, base=base) if one.severity == "error"]
    assert [f"{one.code} {one.dotted}: {one.message}" for one in errors] == []


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("the most nodes that PCS takes", {"node_groups.more.max_count": 1100}, "PCS063"),
        ("the most nodes of one training plan", {"node_groups.train.count": 65}, "GRP028"),
        ("fifty queues", {"node_groups.q48": compute("g6e.12xlarge", 0, max_count=1)}, "PCL013"),
        ("Graviton throughout", {"node_groups.head": head("m7i.4xlarge")}, "PCL032"),
        ("EKS without the internet", {"orchestrator.chart_repository": ...}, "EKS009"),
    ],
)
def test_one_step_further_is_one(name: str, more: Changes, code: str) -> None:
    base, changes = ODD[name]
    kept = {key: value for key, value in changes.items() if more.get(key) is not ...}
    errors = {one.code for one in findings({**kept, **more}, base=base) if one.severity == "error"}
    assert errors == {code}
