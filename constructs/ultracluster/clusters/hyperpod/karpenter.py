"""The role with which HyperPod's Karpenter starts and ends nodes.

SageMaker Developer Guide, "Create an IAM role for HyperPod autoscaling with Karpenter".
"""

from __future__ import annotations

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import service


def karpenter_role(scope: Construct, construct_id: str, *, key: kms.IKey) -> iam.Role:
    """Make the role.

    Args:
        key: encrypts the nodes' volumes.
    """
    stack = Stack.of(scope)
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=service("hyperpod.sagemaker.amazonaws.com"),
        description="Starts and ends HyperPod nodes",
    )
    # the cluster's id is not known before the cluster is, and the cluster asks for the role
    clusters = stack.format_arn(service="sagemaker", resource="cluster", resource_name="*")
    through_sagemaker = {"StringLike": {"kms:ViaService": f"sagemaker.{stack.region}.{Aws.URL_SUFFIX}"}}
    for_volumes = {
        **through_sagemaker,
        "Bool": {"kms:GrantIsForAWSResource": "true"},
        "ForAllValues:StringEquals": {"kms:GrantOperations": _GRANTED},
    }
    for sid, actions, resources, conditions in (
        (
            "ScaleGroups",
            ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
            [clusters],
            {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}},
        ),
        ("SeeKey", ["kms:DescribeKey"], [key.key_arn], through_sagemaker),
        ("UseKeyForVolumes", ["kms:CreateGrant"], [key.key_arn], for_volumes),
    ):
        role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
        )
    acknowledge(
        role, {wildcard(scope, clusters): "The cluster's id is not known before the cluster is made."}
    )
    return role


_GRANTED = [
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptTo",
    "ReEncryptFrom",
    "RetireGrant",
]
