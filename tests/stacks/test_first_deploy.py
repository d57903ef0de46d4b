"""What a first deploy needs: asked of every shipped environment and of every optional feature's overlay."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest
from iam_proof.evaluator import FOLDER
from project import ENVIRONMENTS, ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly, many, statements
from wish_cases import OVERLAYS

from ultracluster.catalog.hyperpod_eks import hyperpod_kubernetes_agreed
from ultracluster.config import Environment, load
from ultracluster.config.kubernetes import HyperPodEks

FILES = [*(f"environments/{name}.yaml" for name in ENVIRONMENTS), *OVERLAYS]


@cache
def environment(file: str) -> Environment:
    return load(ROOT / file).environment


def synthesised(file: str) -> Synthesised:
    return assembly(environment(file), checked=False)


def files_of(*kinds: str) -> list[str]:
    return [file for file in FILES if environment(file).orchestrator.kind in kinds]


KUBERNETES = files_of("eks", "hyperpod-eks")
ON_HYPERPOD = {"sagemaker:AttachClusterNodeVolume", "sagemaker:DescribeClusterNode",
               "sagemaker:DetachClusterNodeVolume", "eks:DescribeCluster"}  # fmt: skip


def rights_of_volumes(made: Synthesised) -> set[str]:
    """Actions of the role of the EBS CSI driver."""
    return {
        action
        for template in made.templates.values()
        for name, one in statements(template)
        if "AwsEbsCsiDriverRole" in name and one["Effect"] == "Allow"
        for action in many(one["Action"])
    }


@pytest.mark.parametrize("file", KUBERNETES)
def test_volumes_reach_the_nodes_of_the_orchestrator(file: str) -> None:
    """HyperPod's nodes are instances of a service's account: `ec2:AttachVolume` does not reach them."""
    hyperpod = environment(file).orchestrator.kind == "hyperpod-eks"
    rights = rights_of_volumes(synthesised(file))

    assert "ec2:AttachVolume" in rights
    assert (rights >= ON_HYPERPOD) == hyperpod
    assert hyperpod or not [one for one in rights if one.startswith("sagemaker:")]


def waits(made: Synthesised, stack: str) -> set[str]:
    """All stacks that are deployed before a stack."""
    artifacts: dict[str, Any] = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
    found: set[str] = set()
    pending = [stack]
    while pending:
        new = {one for one in artifacts[pending.pop()].get("dependencies", []) if one in made.templates}
        pending += new - found
        found |= new
    return found


PROTECTED = [file for file in FILES if environment(file).makes_protection]


@pytest.mark.parametrize("file", PROTECTED)
def test_protection_of_a_control_plane_is_switched_on_last(file: str) -> None:
    """EKS takes one update of a cluster at a time: nothing else of the deploy may be at work on it."""
    made, of = synthesised(file), environment(file)
    before = waits(made, of.stack_name("protection"))
    if not of.orchestrator.kind.endswith("eks"):
        assert of.stack_name("cluster") not in before  # data is protected while nodes are created
        return
    busy = {stack for stack, one in made.templates.items() if "AWS::EKS::" in json.dumps(one)}

    assert busy and busy <= before
    assert before >= {of.stack_name(part) for part in ("system", "cluster", "workloads")}


@pytest.mark.parametrize("file", files_of("hyperpod-eks"))
def test_the_kubernetes_release_is_the_newest_that_all_pages_of_aws_have(file: str) -> None:
    asked = environment(file).orchestrator
    assert isinstance(asked, HyperPodEks) and asked.kubernetes_version == hyperpod_kubernetes_agreed()
    (plane,) = synthesised(file).resources("AWS::EKS::Cluster").values()
    assert plane["Properties"]["Version"] == hyperpod_kubernetes_agreed()


@pytest.mark.parametrize("order", ["beside-system", "after-system"])
def test_nodes_of_hyperpod_come_beside_the_system_stack_or_after_it(order: str) -> None:
    name = "hyperpod-eks-p5"
    asked = loaded(changed(environment_data(name), {"orchestrator.create_nodes": order})).environment
    before = waits(assembly(asked, checked=False), f"{name}-cluster")

    assert f"{name}-control-plane" in before
    assert (f"{name}-system" in before) == (order == "after-system")


@pytest.mark.parametrize("file", files_of("pcs"))
def test_somebody_has_the_logs_of_the_scheduler(file: str) -> None:
    """PCS runs slurmctld at AWS: without a delivery nobody can read why a first node does not come."""
    template = synthesised(file).templates[environment(file).stack_name("cluster")]

    def of(kind: str) -> list[dict[str, Any]]:
        return [one["Properties"] for one in template["Resources"].values() if one["Type"] == kind]

    delivered = {one["Name"]: one["LogType"] for one in of("AWS::Logs::DeliverySource")}
    assert set(delivered.values()) == {"PCS_SCALING_LOGS", "PCS_SCHEDULER_LOGS"}
    assert {one["DeliverySourceName"] for one in of("AWS::Logs::Delivery")} == delivered.keys()
    (group,) = [
        one
        for one in of("AWS::Logs::LogGroup")
        if "/aws/vendedlogs/pcs/" in json.dumps(one.get("LogGroupName"))
    ]
    assert group["KmsKeyId"] and group["RetentionInDays"] == (180 if environment(file).observability else 90)
    assert "LogGroup" in template["Outputs"]


ACTIONS = FOLDER / "node_modules" / "@cloud-copilot" / "iam-data" / "data" / "actions"
"""The Service Authorization Reference as data: what actions take as resources."""


@cache
def actions_of(service: str) -> dict[str, Any]:
    file = ACTIONS / f"{service}.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def never_matching(statement: dict[str, Any]) -> set[str]:
    """Actions of a statement that take no resource, where it names resources: it is never about them."""
    if "*" in many(statement.get("Resource", "*")):
        return set()
    found: set[str] = set()
    for pattern in many(statement.get("Action", [])):
        service, _, name = pattern.lower().partition(":")
        meant = [one for key, one in actions_of(service).items() if fnmatchcase(key, name)]
        assert meant, f"{pattern}: the Service Authorization Reference has no such action"
        if "*" not in name:  # of a group of actions some may have a resource
            found |= {pattern for one in meant if not one["resourceTypes"]}
    return found


@pytest.mark.parametrize("file", FILES)
def test_no_action_without_resources_is_restricted_to_some(file: str) -> None:
    made = synthesised(file).templates
    found = {
        f"{stack} {logical} {action}"
        for stack, template in made.items()
        for logical, one in statements(template)
        for action in never_matching(one)
    }
    assert found == set()


@pytest.mark.parametrize(
    ("action", "found"),
    [
        ("elasticloadbalancing:SetWebAcl", True),
        ("ec2:DescribeInstances", True),
        ("elasticloadbalancing:SetRulePriorities", False),
    ],
)
def test_an_action_without_resources_is_seen(action: str, found: bool) -> None:
    arn = "arn:aws:elasticloadbalancing:us-east-2:111122223333:loadbalancer/*"
    assert bool(never_matching({"Action": action, "Resource": [arn]})) is found
    assert not never_matching({"Action": [action], "Resource": "*"})


@pytest.mark.parametrize("file", FILES)
def test_patterns_and_groups_of_rules_are_below_the_quotas(file: str) -> None:
    """Amazon EventBridge User Guide and AMP User Guide, quotas: 2,048 characters, 20 rules by default."""
    made = synthesised(file)
    for rule in made.resources("AWS::Events::Rule").values():
        pattern = re.sub(
            r"\s*\{\s*\"(Ref|Fn::\w+)\".*?\}", "x" * 30, json.dumps(rule["Properties"]["EventPattern"])
        )
        assert len(pattern) <= 2048
    for one in made.resources("AWS::APS::RuleGroupsNamespace").values():
        groups = YAML(typ="safe").load(one["Properties"]["Data"])["groups"]
        assert all(len(group["rules"]) <= 20 for group in groups)


@pytest.mark.parametrize("file", files_of("hyperpod-slurm", "hyperpod-eks"))
def test_hyperpod_is_told_of_threads_only_where_a_file_names_them(file: str) -> None:
    (cluster,) = synthesised(file).resources("AWS::SageMaker::Cluster").values()
    told = [
        one
        for kind in ("InstanceGroups", "RestrictedInstanceGroups")
        for one in cluster["Properties"].get(kind, [])
    ]
    groups = environment(file).node_groups

    assert told
    assert {one["InstanceGroupName"]: one.get("ThreadsPerCore") for one in told} == {
        one["InstanceGroupName"]: groups[one["InstanceGroupName"]].threads_per_core for one in told
    }
