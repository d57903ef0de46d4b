"""Templates with as many groups as an orchestrator takes stay below CloudFormation's limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_support import environment_data, loaded
from templates import assembly

from ultracluster.plan.draft import Wishes, draft
from ultracluster.rules import check

BYTES, RESOURCES = 1_000_000, 500
"""CloudFormation User Guide, "CloudFormation quotas": template body in an S3 object (1 MB), resources."""


def with_groups(base: str, group: str, count: int, changes: dict[str, Any]) -> dict[str, Any]:
    """A shipped environment with copies of a group, `count` groups in all."""
    data = environment_data(base)
    pattern = {**data["node_groups"][group], **changes}
    for number in range(count - len(data["node_groups"])):
        own = {"partition": f"part{number:02d}"} if "partition" in pattern else {}
        data["node_groups"][f"more{number:02d}"] = {**pattern, **own}
    return data


@pytest.mark.parametrize(
    ("base", "group", "count", "changes"),
    [
        ("dev", "gpu", 100, {}),
        # a training plan has no room for so many nodes
        ("hyperpod-eks-p5", "train", 100, {"capacity": {"kind": "on-demand"}}),
        # the type with the most network cards, and a placement group for each
        ("eks-p5en", "train", 100, {"instance_type": "p5.48xlarge", "capacity": {"kind": "on-demand"}}),
        ("pcs-p6-b200", "train", 10, {"count": 2}),  # rule PCS003: PCS makes no more
        ("parallelcluster-p5", "reserved", 51, {}),  # rule PCL012: ParallelCluster takes no more queues
    ],
)
def test_as_many_groups_as_there_may_be_fit_into_templates(
    base: str, group: str, count: int, changes: dict[str, Any]
) -> None:
    one = loaded(with_groups(base, group, count, changes))
    assert not [finding for finding in check(one) if finding.blocks], check(one)
    assert len(one.environment.node_groups) == count

    for file in assembly(one.environment, checked=False).files:
        assert file.stat().st_size < BYTES, file.name
        assert len(json.loads(file.read_text())["Resources"]) <= RESOURCES, file.name


RULES, ROLE, MANAGED = 60, 10_240, 6_144
"""Amazon VPC quotas: rules of a security group, each way; IAM quotas: characters of a role's inline policies
and of a managed policy, without spaces."""


@pytest.mark.parametrize(
    ("orchestrator", "nodes"), [("hyperpod-slurm", 2000), ("eks", 1300), ("parallelcluster", 4000)]
)
def test_the_largest_drafts_fit_into_templates_groups_and_policies(orchestrator: Any, nodes: int) -> None:
    """At the nodes that one subnet holds: nothing grows with them but groups of EKS, and the second block."""
    text = draft(
        Wishes(region="us-east-1", orchestrator=orchestrator, instance_type="p5.48xlarge", nodes=nodes)
    )
    one = assembly(loaded(YAML(typ="safe").load(text)).environment)

    assert one.findings == set()
    blocks = [row["Properties"]["CidrBlock"] for row in one.resources("AWS::EC2::VPCCidrBlock").values()]
    assert blocks == ([] if orchestrator == "parallelcluster" else ["10.1.0.0/16"])
    for file in one.files:
        assert file.stat().st_size < BYTES, file.name
        resources = json.loads(file.read_text())["Resources"]
        assert len(resources) <= RESOURCES, file.name
        for name, row in resources.items():
            found = row.get("Properties", {})
            for way in ("SecurityGroupIngress", "SecurityGroupEgress"):
                assert len(found.get(way, ())) <= RULES, name
            if row["Type"] == "AWS::IAM::Role":
                inline = [policy["PolicyDocument"] for policy in found.get("Policies", ())]
                assert sum(map(_characters, inline)) <= ROLE, name
            if row["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
                most = MANAGED if row["Type"].endswith("ManagedPolicy") else ROLE
                assert _characters(found["PolicyDocument"]) <= most, name


def _characters(document: Any) -> int:
    return len(json.dumps(document, separators=(",", ":")))
