"""Roles of an EKS cluster, written out instead of AWS's managed policies.

EKS User Guide, "Amazon EKS cluster IAM role", "Amazon EKS node IAM role", "AWS managed policies for Amazon
EKS".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.node_statements import MIRROR_IS_READ, SESSION_CHANNELS, read_below
from ultracluster.security.principals import service

ANY = "AwsSolutions-IAM5[Resource::*]"
DESCRIBES = "Describe calls and tokens know no resources (Service Authorization Reference)."


def control_plane_role(scope: Construct, construct_id: str, *, key: kms.IKey) -> iam.Role:
    """What the control plane may do: tag and look at nodes, and where they are in the network."""
    stack = Stack.of(scope)
    role = iam.Role(
        scope, construct_id, assumed_by=service("eks.amazonaws.com"), description="EKS control plane"
    )
    instances = stack.format_arn(service="ec2", resource="instance", resource_name="*")
    _add(
        role,
        "TagNodes",
        ["ec2:CreateTags"],
        [instances],
        {"ForAnyValue:StringLike": {"aws:TagKeys": ["kubernetes.io/cluster/*"]}},
    )
    _add(role, "DescribeNetwork", _CONTROL_PLANE_SEES, ["*"])
    _add(role, "SeeKey", ["kms:DescribeKey"], [key.key_arn])
    acknowledge(
        role,
        {
            ANY: DESCRIBES,
            wildcard(scope, instances): "Nodes that do not exist yet; only the cluster's own tag.",
        },
    )
    return role


def node_role(
    scope: Construct,
    construct_id: str,
    *,
    cluster_arn: str,
    mirror: str | None = None,
    role: iam.IRole | None = None,
) -> iam.IRole:
    """What nodes may do: join, pull images, open sessions, read a mirrored release.

    Pods do not get it: the instance metadata service answers no further than the node itself.

    Args:
        cluster_arn: the cluster that they join.
        mirror: `s3://bucket/prefix` of mirrored software releases.
        role: gets the statements, instead of a role that is made.
    """
    stack = Stack.of(scope)
    if role is None:
        # the CDK's class and interface differ in names of arguments
        role = cast(
            "iam.IRole",
            iam.Role(scope, construct_id, assumed_by=service("ec2.amazonaws.com"), description="EKS nodes"),
        )
    # the images of EKS and its add-ons are in accounts of AWS
    images = stack.format_arn(service="ecr", account="*", resource="repository", resource_name="*")
    _add(role, "DescribeNetwork", _NODE_SEES, ["*"])
    _add(role, "Join", ["eks:DescribeCluster"], [cluster_arn])
    _add(role, "PodIdentity", ["eks-auth:AssumeRoleForPodIdentity"], [cluster_arn])
    _add(role, "PullImages", _PULL, [images])
    _add(role, "RegistryTokens", ["ecr:GetAuthorizationToken"], ["*"])
    # Lustre over EFA asks for it (awslabs/awsome-distributed-ai#1202)
    _add(role, "DescribeFileSystems", ["fsx:DescribeFileSystems"], ["*"])
    _add(role, "SessionManager", _SESSIONS, ["*"])
    accepted = {
        ANY: DESCRIBES,
        wildcard(scope, images): "EKS's own images are in accounts of AWS; read-only.",
    }
    if mirror:
        statements, files = read_below(scope, mirror, "Mirror")
        for statement in statements:
            role.add_to_principal_policy(statement)
        accepted[wildcard(scope, files)] = MIRROR_IS_READ
    acknowledge(role, accepted)
    return role


def addon_role(scope: Construct, construct_id: str, *, cluster_arn: str, addon: str) -> iam.Role:
    """A role for the pods of one add-on, through EKS Pod Identity; it starts without permissions."""
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=service("pods.eks.amazonaws.com"),
        description=f"EKS add-on {addon}",
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


def allow_interfaces(role: iam.Role) -> None:
    """The VPC CNI: addresses for pods on the nodes' interfaces."""
    stack = Stack.of(role)
    # HyperPod's instances are in an account of the service, and a shared subnet or group is its owner's
    resources = [
        stack.format_arn(service="ec2", account=account, resource=resource, resource_name="*")
        for resource, account in (
            ("instance", "*"),
            ("network-interface", None),
            ("security-group", "*"),
            ("subnet", "*"),
        )
    ]
    _add(role, "PodAddresses", _CNI, resources)
    _add(role, "TagInterfaces", ["ec2:CreateTags"], resources[1:2])
    _add(role, "DescribeNetwork", _CNI_SEES, ["*"])
    why = "The interfaces of nodes that do not exist yet."
    acknowledge(role, {ANY: DESCRIBES} | {wildcard(role, arn): why for arn in resources})


def allow_volumes(role: iam.Role, key: kms.IKey) -> None:
    """The EBS CSI driver: volumes that carry its own tag, encrypted with the key."""
    stack = Stack.of(role)
    volumes, instances = (
        stack.format_arn(service="ec2", resource=resource, resource_name="*")
        for resource in ("volume", "instance")
    )
    own = {"StringLike": {"aws:RequestTag/ebs.csi.aws.com/cluster": "true"}}
    marked = {"StringLike": {"ec2:ResourceTag/ebs.csi.aws.com/cluster": "true"}}
    _add(role, "MakeVolumes", ["ec2:CreateVolume"], [volumes], own)
    _add(
        role,
        "TagNewVolumes",
        ["ec2:CreateTags"],
        [volumes],
        {"StringEquals": {"ec2:CreateAction": "CreateVolume"}},
    )
    _add(role, "UseOwnVolumes", ["ec2:DeleteVolume", "ec2:ModifyVolume"], [volumes], marked)
    _add(role, "Attach", ["ec2:AttachVolume", "ec2:DetachVolume"], [volumes, instances])
    _add(role, "DescribeVolumes", _EBS_SEES, ["*"])
    _add(
        role,
        "UseKey",
        ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"],
        [key.key_arn],
    )
    _add(
        role,
        "UseKeyForVolumes",
        ["kms:CreateGrant"],
        [key.key_arn],
        {"Bool": {"kms:GrantIsForAWSResource": "true"}},
    )
    why = "Volumes that do not exist yet; what is made, changed or deleted carries the driver's tag."
    acknowledge(role, {ANY: DESCRIBES, wildcard(role, volumes): why, wildcard(role, instances): why})


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
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
]
_EBS_SEES = [
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeSnapshots",
    "ec2:DescribeTags",
    "ec2:DescribeVolumeStatus",
    "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications",
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
