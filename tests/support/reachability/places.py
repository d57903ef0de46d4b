"""Who stands where: every interface of an environment, with its security groups and subnets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iam_proof.resolved import Resolved

from reachability.reading import noted
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources

Told = Mapping[str, Any]
FUNCTIONS = {
    "onEvent handler for EKS kubectl": "kubectl-function",
    "AWS CDK resource provider framework - onEvent": "kubectl-function",
    "Makes the user of slurmdbd": "database-function",
}
"""Kinds of functions by how their description begins."""
UNDERSTOOD = {
    "AWS::EC2::LaunchTemplate", "AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::FSx::FileSystem",
    "AWS::Lambda::Function", "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::RDS::DBInstance",
    "AWS::RDS::DBSubnetGroup", "AWS::SageMaker::Cluster", "Custom::PclusterCluster",
}  # fmt: skip
"""Types outside of EC2's network that say who stands where, and are read here."""


@dataclass(frozen=True)
class Place:
    """Interfaces with the same groups in the same subnets.

    `kind` is the role of a node, or `api`, `database`, `endpoint`, `lustre`, `openzfs`, `pcs-controller`, or
    what a function is for; `resource` is `stack/logical id`.
    """

    kind: str
    name: str
    groups: tuple[str, ...]
    subnets: tuple[str, ...]
    resource: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind


def places_of(made: Resolved, environment: Environment, unjudged: list[str]) -> Iterator[Place]:
    """All places; those without a security group have none here, too."""
    for read in (_nodes, _services):
        for stack, logical, _ in made.resources(*UNDERSTOOD, "AWS::EC2::VPCEndpoint"):
            with noted(unjudged, f"{stack}/{logical}"):
                yield from read(made, environment, stack, logical)
    asked = environment.orchestrator
    if asked.kind == "parallelcluster" and asked.deploy_with == "pcluster":
        with noted(unjudged, "the rendered configuration"):
            yield from _rendered(made, environment)


def _services(made: Resolved, _: Environment, stack: str, logical: str) -> Iterator[Place]:
    told, where = made.properties(stack, logical), f"{stack}/{logical}"
    match made.templates[stack]["Resources"][logical]["Type"]:
        case "AWS::EKS::Cluster":
            vpc = told["ResourcesVpcConfig"]
            own = made.attribute(stack, logical, "ClusterSecurityGroupId")
            yield _place("api", "", [*vpc["SecurityGroupIds"], own], vpc["SubnetIds"], where)
        case "AWS::PCS::Cluster":
            vpc = told["Networking"]
            yield _place("pcs-controller", "", vpc["SecurityGroupIds"], vpc["SubnetIds"], where)
        case "AWS::FSx::FileSystem":
            kind = {"LUSTRE": "lustre", "OPENZFS": "openzfs"}[told["FileSystemType"]]
            groups = told.get("SecurityGroupIds", [])
            yield _place(kind, "", groups, told["SubnetIds"], where)
        case "AWS::RDS::DBInstance":
            subnets = _subnets_of(made, told["DBSubnetGroupName"])
            yield _place("database", "", told.get("VPCSecurityGroups", []), subnets, where)
        case "AWS::Lambda::Function" if "VpcConfig" in told:
            kinds = (kind for text, kind in FUNCTIONS.items() if told.get("Description", "").startswith(text))
            kind, vpc = next(kinds, "function"), told["VpcConfig"]
            yield _place(kind, logical, vpc["SecurityGroupIds"], vpc["SubnetIds"], where)
        case "AWS::EC2::VPCEndpoint" if told.get("VpcEndpointType") == "Interface":
            # the name of a service that resolves to public addresses is not answered by the endpoint
            name = told["ServiceName"].split(".", 3)[3] if told.get("PrivateDnsEnabled") else "without a name"
            yield _place("endpoint", name, told.get("SecurityGroupIds", []), told["SubnetIds"], where)
        case _:
            pass


def _nodes(made: Resolved, environment: Environment, stack: str, logical: str) -> Iterator[Place]:
    roles = _roles(environment)
    told, where = made.properties(stack, logical), f"{stack}/{logical}"
    match made.templates[stack]["Resources"][logical]["Type"]:
        case "AWS::SageMaker::Cluster":
            for one in told["InstanceGroups"]:
                vpc = one.get("OverrideVpcConfig") or told["VpcConfig"]
                name = one["InstanceGroupName"]
                # the service makes the interfaces, those of EFA as well, all with these groups
                yield _place(roles[name], name, vpc["SecurityGroupIds"], vpc["Subnets"], where)
        case "AWS::EKS::Nodegroup":
            name, template = told["Labels"]["ultracluster/node-group"], told["LaunchTemplate"]["Id"]
            yield from _launched(made, template, roles[name], name, told["Subnets"])
        case "AWS::PCS::ComputeNodeGroup":
            name, template = told["Name"], told["CustomLaunchTemplate"]["TemplateId"]
            yield from _launched(made, template, roles[name], name, told["SubnetIds"])
        case "Custom::PclusterCluster":
            yield from _parallelcluster(told["ClusterConfiguration"], roles, where)
        case _:
            pass


def _roles(environment: Environment) -> dict[str, str]:
    return {name: group.role for name, group in environment.node_groups.items()}


def _rendered(made: Resolved, environment: Environment) -> Iterator[Place]:
    """What `pcluster` makes of the file that is rendered for it."""
    sources = value_sources(environment)
    outputs = {stack: made.templates[stack]["Outputs"] for stack in sources.stacks}
    values = sources.filled(
        {
            stack: {name: made.value(stack, one["Value"]) for name, one in found.items()}
            for stack, found in outputs.items()
        }
    )
    yield from _parallelcluster(
        cluster_configuration(resolve(environment), values), _roles(environment), "the rendered configuration"
    )


def _launched(made: Resolved, template: str, role: str, name: str, subnets: Sequence[str]) -> Iterator[Place]:
    """A place for each set of groups that interfaces of a launch template have."""
    for stack, logical, _ in made.resources("AWS::EC2::LaunchTemplate"):
        if made.ref(stack, logical) != template:
            continue
        data = made.properties(stack, logical)["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces") or [{"Groups": data.get("SecurityGroupIds", [])}]
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for one in interfaces:
            found.setdefault(tuple(one.get("Groups", [])), []).append(one)
        for groups, some in found.items():
            first = interfaces.index(some[0])
            text = name if len(found) == 1 else f"{name}, interface {first}"
            yield _place(role, text, groups, subnets, f"{stack}/{logical}")


def _parallelcluster(told: Told, roles: Mapping[str, str], where: str) -> Iterator[Place]:
    """ParallelCluster gives these groups to all interfaces of a node, and makes none beside them."""
    head = told["HeadNode"]["Networking"]
    (name,) = (one for one, role in roles.items() if role == "controller")
    yield _place("controller", name, head.get("SecurityGroups", []), [head["SubnetId"]], where)
    for pool in told.get("LoginNodes", {}).get("Pools", []):
        net = pool["Networking"]
        yield _place("login", pool["Name"], net.get("SecurityGroups", []), net["SubnetIds"], where)
    for queue in told["Scheduling"]["SlurmQueues"]:
        net = queue["Networking"]
        for one in queue["ComputeResources"]:
            yield _place("compute", one["Name"], net.get("SecurityGroups", []), net["SubnetIds"], where)
    if vpc := told.get("DeploymentSettings", {}).get("LambdaFunctionsVpcConfig"):
        yield _place("parallelcluster-function", "", vpc["SecurityGroupIds"], vpc["SubnetIds"], where)


def _place(kind: str, name: str, groups: Sequence[str], subnets: Sequence[str], resource: str) -> Place:
    return Place(kind, name, tuple(groups), tuple(subnets), resource)


def _subnets_of(made: Resolved, group: str) -> Sequence[str]:
    for stack, logical, _ in made.resources("AWS::RDS::DBSubnetGroup"):
        if made.ref(stack, logical) == group:
            return made.properties(stack, logical)["SubnetIds"]
    raise LookupError(f"no template makes the subnet group {group}")
