"""Which statements of IAM the nodes of each role have in synthesised templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from templates import Synthesised, Template

from ultracluster.config import Environment

Statement = dict[str, Any]


def rights_of_nodes(made: Synthesised, environment: Environment) -> dict[str, list[Statement]]:
    """The statements by role of node: `controller`, `login`, `compute`, `system`.

    Of ParallelCluster, which makes the roles itself, those that it is told to add.
    """
    found: dict[str, list[Statement]] = {}
    for template in made.templates.values():
        for role, names in _nodes(template, environment):
            found.setdefault(role, []).extend(_statements(template, names))
    return found


def of_cluster(made: Synthesised, kind: str) -> Iterator[tuple[Template, dict[str, Any]]]:
    """Resources of a type, each with its template."""
    for template in made.templates.values():
        for resource in template["Resources"].values():
            if resource["Type"] == kind:
                yield template, resource["Properties"]


def _nodes(template: Template, environment: Environment) -> Iterator[tuple[str, set[str]]]:
    """Role of node, and the logical ids of its IAM roles or policies."""
    resources = template["Resources"]
    for resource in resources.values():
        told = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::SageMaker::Cluster":
                for group in told["InstanceGroups"]:
                    role = environment.node_groups[group["InstanceGroupName"]].role
                    yield role, {group["ExecutionRole"]["Fn::GetAtt"][0]}
            case "AWS::PCS::ComputeNodeGroup":
                profile = resources[told["IamInstanceProfileArn"]["Fn::GetAtt"][0]]["Properties"]
                yield environment.node_groups[told["Name"]].role, {profile["Roles"][0]["Ref"]}
            case "AWS::EKS::Nodegroup":
                yield told["Labels"]["ultracluster/role"], {told["NodeRole"]["Fn::GetAtt"][0]}
            case "AWS::EKS::AccessEntry" if told.get("Type") == "EC2_LINUX":
                yield "compute", {told["PrincipalArn"]["Fn::GetAtt"][0]}
            case "Custom::PclusterCluster":
                yield from _parallelcluster(told["ClusterConfiguration"])
            case _:
                pass
    # the cluster of the `pcluster` command is told by outputs
    for output, role in (
        ("HeadPolicyArn", "controller"),
        ("LoginPolicyArn", "login"),
        ("NodePolicyArn", "compute"),
    ):
        if told := template.get("Outputs", {}).get(output):
            yield role, {told["Value"]["Ref"]}


def _parallelcluster(configuration: dict[str, Any]) -> Iterator[tuple[str, set[str]]]:
    def of(node: dict[str, Any]) -> set[str]:
        return {one["Policy"]["Ref"] for one in node["Iam"]["AdditionalIamPolicies"]}

    yield "controller", of(configuration["HeadNode"])
    for pool in configuration.get("LoginNodes", {}).get("Pools", []):
        yield "login", of(pool)
    for queue in configuration["Scheduling"]["SlurmQueues"]:
        yield "compute", of(queue)


def _statements(template: Template, names: set[str]) -> Iterator[Statement]:
    for name, resource in template["Resources"].items():
        told = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::IAM::Policy":
                given = {one["Ref"] for one in told.get("Roles", []) if "Ref" in one} & names
            case "AWS::IAM::ManagedPolicy":
                given = {name} & names
            case _:
                given = set[str]()
        if given:
            yield from told["PolicyDocument"]["Statement"]
