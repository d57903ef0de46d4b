"""Roles of an EKS cluster, written out instead of AWS's managed policies.

EKS User Guide, "Amazon EKS cluster IAM role", "Amazon EKS node IAM role", "AWS managed policies for Amazon
EKS".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.interfaces import InterfacePlace, instances
from ultracluster.security.node_statements import MIRROR_IS_READ, SESSION_CHANNELS, read_below
from ultracluster.security.principals import trusted

ANY = "AwsSolutions-IAM5[Resource::*]"
DESCRIBES = "Describe calls and tokens know no resources (Service Authorization Reference)."


def control_plane_role(scope: Construct, construct_id: str, *, cluster_arn: str, key: kms.IKey) -> iam.Role:
    """What the control plane may do: tag and look at nodes, and where they are in the network.

    Args:
        cluster_arn: the only cluster that EKS may use it for.
        key: encrypts secrets in the cluster.
    """
    stack = Stack.of(scope)
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted(scope, "eks.amazonaws.com", source_arn=cluster_arn),
        description="EKS control plane",
    )
    nodes = stack.format_arn(service="ec2", resource="instance", resource_name="*")
    _add(
        role,
        "TagNodes",
        ["ec2:CreateTags"],
        [nodes],
        {"ForAnyValue:StringLike": {"aws:TagKeys": ["kubernetes.io/cluster/*"]}},
    )
    _add(role, "DescribeNetwork", _CONTROL_PLANE_SEES, ["*"])
    _add(role, "SeeKey", ["kms:DescribeKey"], [key.key_arn])
    acknowledge(
        role,
        {
            ANY: DESCRIBES,
            wildcard(scope, nodes): "Nodes that do not exist yet; only calls with a tag of a "
            "Kubernetes cluster, as in AWS's AmazonEKSClusterPolicy.",
        },
    )
    return role


def node_role(
    scope: Construct,
    construct_id: str,
    *,
    cluster_arn: str,
    nodes: Role = "compute",
    mirror: str | None = None,
    role: iam.IRole | None = None,
) -> iam.IRole:
    """What nodes may do: join, pull images, open sessions; those that run jobs read a mirrored release, too.

    Pods do not get it: the instance metadata service answers no further than the node itself.

    Args:
        cluster_arn: the cluster that they join.
        nodes: their role; `system` nodes run no scripts of ours, and mount nothing over EFA.
        mirror: `s3://bucket/prefix` of mirrored software releases.
        role: gets the statements, instead of a role that is made.
    """
    stack = Stack.of(scope)
    if role is None:
        # the CDK's class and interface differ in names of arguments
        role = cast(
            "iam.IRole",
            iam.Role(
                scope,
                construct_id,
                assumed_by=trusted(scope, "ec2.amazonaws.com"),
                description="EKS nodes" if nodes == "compute" else f"EKS {nodes} nodes",
            ),
        )
    # the images of EKS and its add-ons are in accounts of AWS
    images = stack.format_arn(service="ecr", account="*", resource="repository", resource_name="*")
    _add(role, "DescribeNetwork", _NODE_SEES, ["*"])
    _add(role, "Join", ["eks:DescribeCluster"], [cluster_arn])
    _add(role, "PodIdentity", ["eks-auth:AssumeRoleForPodIdentity"], [cluster_arn])
    _add(role, "PullImages", _PULL, [images])
    _add(role, "RegistryTokens", ["ecr:GetAuthorizationToken"], ["*"])
    if nodes == "compute":
        # Lustre over EFA asks for it (awslabs/awsome-distributed-ai#1202)
        _add(role, "DescribeFileSystems", ["fsx:DescribeFileSystems"], ["*"])
    _add(role, "SessionManager", _SESSIONS, ["*"])
    accepted = {
        ANY: f"{DESCRIBES} Nor do Systems Manager's channels; UpdateInstanceInformation only tells it what "
        "runs on a node.",
        wildcard(scope, images): "EKS's own images are in accounts of AWS; read-only.",
    }
    if mirror and nodes == "compute":
        statements, files = read_below(scope, mirror, "Mirror")
        for statement in statements:
            role.add_to_principal_policy(statement)
        accepted[wildcard(scope, files)] = MIRROR_IS_READ
    acknowledge(role, accepted)
    return role


def addon_role(scope: Construct, construct_id: str, *, cluster_arn: str, addon: str) -> iam.Role:
    """A role for the pods of one add-on, through EKS Pod Identity; it starts without permissions."""
    return pod_role(scope, construct_id, cluster_arn=cluster_arn, description=f"EKS add-on {addon}")


def pod_role(scope: Construct, construct_id: str, *, cluster_arn: str, description: str) -> iam.Role:
    """A role for pods of one cluster, through EKS Pod Identity; it starts without permissions."""
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted(scope, "pods.eks.amazonaws.com", source_arn=cluster_arn),
        description=description,
    )
    # the CDK's own statement lacks the session tags of Pod Identity and says nothing of whose pods they are
    cast("CfnResource", role.node.default_child).add_property_override(
        "AssumeRolePolicyDocument.Statement",
        [
            {
                "Action": ["sts:AssumeRole", "sts:TagSession"],
                "Condition": {"ArnEquals": {"aws:SourceArn": Stack.of(scope).resolve(cluster_arn)}},
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
            }
        ],
    )
    return role


def allow_interfaces(role: iam.Role, *, vpc: ec2.IVpc) -> None:
    """The VPC CNI: addresses for pods on the nodes' interfaces, in one VPC."""
    # which subnets and groups nodes have, their groups say; HyperPod's instances are in the service's account
    place = InterfacePlace.of(role, vpc=vpc)
    resources = [*place.resources, instances(role)]
    _add(role, "PodAddresses", _CNI, resources, place.inside)
    _add(role, "TagInterfaces", ["ec2:CreateTags"], [place.interfaces], place.inside)
    _add(role, "DescribeNetwork", _CNI_SEES, ["*"])
    why = (
        "Nodes are added later, in any subnet and group of the cluster's VPC; what is in another is refused."
    )
    attached = "Of nodes that do not exist yet, and for HyperPod's in an account of the service; only an "
    attached += "interface of the cluster's VPC can be attached to them."
    acknowledge(
        role,
        {ANY: DESCRIBES}
        | {wildcard(role, arn): why for arn in place.resources}
        | {wildcard(role, instances(role)): attached},
    )


def allow_file_systems(role: iam.Role) -> None:
    """The FSx CSI driver: it mounts file systems that exist and makes none."""
    _add(role, "DescribeFileSystems", ["fsx:DescribeFileSystems"], ["*"])
    acknowledge(role, {ANY: DESCRIBES})


_CONTROL_PLANE_SEES = [
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTopology",  # the labels topology.k8s.aws/network-node-layer-*
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeVpcs",
]
_NODE_SEES = [
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcs",
]
_PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
_SESSIONS = [
    "ssm:UpdateInstanceInformation",
    *SESSION_CHANNELS,
]
_CNI = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
]
_CNI_SEES = [
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
]


def _add(
    role: iam.IRole | iam.Role,
    sid: str,
    actions: list[str],
    resources: list[str],
    conditions: Mapping[str, object] | None = None,
) -> None:
    role.add_to_principal_policy(
        iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=dict(conditions or {}))
    )
