"""The role with which HyperPod's Karpenter starts and ends nodes.

SageMaker Developer Guide, "Create an IAM role for HyperPod autoscaling with Karpenter".
"""

from __future__ import annotations

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import trusted

CLUSTER_TAG = "ultracluster:cluster"
"""Of the HyperPod cluster, with its name: Karpenter's role may change nodes of clusters that have it."""


def karpenter_role(scope: Construct, construct_id: str, *, key: kms.IKey, cluster_name: str) -> iam.Role:
    """Make the role.

    Args:
        key: encrypts the nodes' volumes.
        cluster_name: of the HyperPod cluster, which has it as its tag `CLUSTER_TAG`, too.
    """
    stack = Stack.of(scope)
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted(scope, "hyperpod.sagemaker.amazonaws.com"),
        description="Starts and ends HyperPod nodes",
    )
    # the cluster's id is not known before the cluster is, and the cluster asks for the role: its tag tells it
    # (Service Authorization Reference, "Amazon SageMaker": resource type cluster)
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
            {
                "StringEquals": {
                    "aws:ResourceAccount": "${aws:PrincipalAccount}",
                    f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name,
                }
            },
        ),
        ("SeeKey", ["kms:DescribeKey"], [key.key_arn], through_sagemaker),
        ("UseKeyForVolumes", ["kms:CreateGrant"], [key.key_arn], for_volumes),
    ):
        role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
        )
    acknowledge(
        role,
        {
            wildcard(scope, clusters): "Only the cluster that has the tag of this one; its id is not "
            "known before it is made."
        },
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
