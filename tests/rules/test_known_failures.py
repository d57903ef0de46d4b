"""docs/known-failures.md: each thread that a rule meets is shown here, and is met."""

from __future__ import annotations

import re
from typing import Any

import pytest
from project import ROOT
from rules_support import EXISTING_DATABASE, OPENZFS, codes

from ultracluster.rules import all_rules

PAGE = (ROOT / "docs" / "known-failures.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \S+#\d+", line)]
BLOCK = {"kind": "capacity-block", "id": "cr-0123456789abcdef0"}
VPC = {"network.vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}}
SUBNET = {"network.subnet": {"id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}}
EFA_LUSTRE = {"storage.lustre.capacity_gib": 19200, "storage.lustre.efa": True}
BURST = {"role": "compute", "instance_type": "p5.48xlarge", "count": 0, "max_count": 8}
TAINT = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}

SHOWN: list[tuple[str, str, dict[str, Any], str]] = [
    # thread, base, what shows it, the rule that speaks
    ("adai#204", "eks-p5en", {"region": "eu-central-1", "network.zone_id": "euc1-az1",
                              "orchestrator.second_zone_id": "euc1-az2",
                              "node_groups.train.instance_type": "p6-b200.48xlarge"}, "GRP025"),
    ("adai#204", "dev", {"region": "us-east-1", "network.zone_id": "use1-az1",
                         "node_groups.gpu.instance_type": "p5en.48xlarge"}, "GRP026"),
    ("adai#204", "dev", {"network.zone_id": "use1-az6"}, "ENV003"),
    ("adai#204", "dev", {"network.zone_id": "usw2-az9"}, "ENV004"),
    ("adai#259", "dev", {**VPC, **SUBNET, "network.security_group": {"id": "sg-0123456789abcdef0"}},
     "NET024"),
    ("adai#899,", "dev", {"storage.openzfs": {**OPENZFS, "throughput_mbps": 64}}, "FSX040"),
    ("adai#1097", "dev", {"storage.openzfs": {**OPENZFS, "deployment": "single-az-ha-1"}}, "FSX042"),
    ("adai#1202,", "dev", {**EFA_LUSTRE, "node_groups.gpu.instance_type": "p4d.24xlarge"}, "FSX012"),
    ("adai#1202,", "dev", {"storage.lustre.capacity_gib": 19200}, "FSX014"),
    ("sample-physical-ai-scaffolding-kit#14", "pcs-p6-b200",
     {"orchestrator.slurm_settings.TopologyPlugin": "topology/tree"}, "PCS040"),
    ("sample-physical-ai-scaffolding-kit#14", "parallelcluster-p5",
     {"orchestrator.slurm_settings": {"TopologyPlugin": "topology/tree"}}, "PCL050"),
    ("sample-physical-ai-scaffolding-kit#17", "dev", {"storage.accounting_database": EXISTING_DATABASE},
     "HPS063"),
    ("ai-on-sagemaker-hyperpod#142", "hyperpod-eks-p5",
     {"node_groups.system.instance_type": "t3.medium", "node_groups.system.count": 1}, "EKS030"),
    ("ml-container-creator#297", "eks-p5en", {"node_groups.system.count": 0}, "EKS021"),
    ("ml-container-creator#297", "eks-p5en", {"node_groups.system.count": 1}, "EKS022"),
    ("ml-container-creator#297", "eks-p5en",
     {"node_groups.system.taints": [TAINT],
      "orchestrator.chart_values": {"jobset": {"controller": {"tolerations": []}}}}, "EKS018"),
    ("sagemaker-hyperpod-cli#359", "hyperpod-eks-p5", {"region": "ap-northeast-2"}, "HPE005"),
    ("kp#9489", "eks-p5en",
     {"node_groups.burst": {**BURST, "capacity": {"kind": "reservation", "id": "cr-0fedcba9876543210"}},
      "orchestrator.karpenter": {"groups": ["burst"]}}, "EKS056"),
    ("kp#8514", "eks-p5en",
     {"node_groups.more": {"role": "compute", "instance_type": "p5.48xlarge", "count": 2, "capacity": BLOCK}},
     "GRP027"),
    ("kp#8514", "eks-p5en", {"node_groups.train.count": 65}, "GRP028"),
    ("pc#7601", "parallelcluster-p5", {"orchestrator.version": "3.16.0"}, "PCL062"),
    ("pc#6777", "parallelcluster-p5",
     {"orchestrator.partitions.train.gpu_health_checks": True}, "PCL047"),
    ("pc#1216,", "dev", {"network.node_cidr": "10.0.0.0/24", "node_groups.gpu.instance_type": "p5.48xlarge",
                         "node_groups.gpu.count": 8}, "NET005"),
]  # fmt: skip


@pytest.mark.parametrize(("thread", "base", "changes", "code"), SHOWN, ids=lambda one: str(one)[:40])
def test_a_rule_speaks_of_it(thread: str, base: str, changes: dict[str, Any], code: str) -> None:
    assert code in codes(changes, base=base)


def test_thirty_threads_are_on_the_page_and_each_is_answered() -> None:
    assert len(ROWS) == 30
    assert all(len(row) == 3 and row[2].strip(" |") for row in ROWS)


def test_what_is_shown_here_is_on_the_page() -> None:
    answers = {row[0].removeprefix("| ").split()[0]: row[2] for row in ROWS}
    spans = re.sub(r"([A-Z]+)(\d+) to [A-Z]+(\d+)", _spelled_out, PAGE)
    for thread, *_, code in SHOWN:
        assert thread in answers, thread
        assert code in spans, f"{thread}: {code}"


def _spelled_out(found: re.Match[str]) -> str:
    return " ".join(f"{found[1]}{number:03d}" for number in range(int(found[2]), int(found[3]) + 1))


def test_every_rule_that_the_page_names_exists() -> None:
    named = set(re.findall(r"\b(?:ENV|NET|GRP|EFA|FSX|DATA|HYP|HPS|HPE|EKS|PCL|PCS|SOF|IMG)\d{3}\b", PAGE))
    assert named <= {rule.id for rule in all_rules()}
    assert named - {code for *_, code in SHOWN} <= {"FSX013", "GRP020"}  # GRP020: tests/compute
