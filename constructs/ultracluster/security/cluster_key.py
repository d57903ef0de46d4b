"""The customer-managed KMS key of one environment (AWS KMS Developer Guide, "Key policies")."""

from __future__ import annotations

from typing import cast

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.security.principals import anyone, service

# FSx reads and writes the linked S3 objects as a role of its own for each file system
# (FSx for Lustre User Guide, "Working with server-side encrypted Amazon S3 buckets").
FSX_S3_ROLES = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"


class ClusterKey(Construct):
    """A key with yearly rotation that encrypts file systems, volumes, buckets, logs and secrets.

    It is always retained: whatever it encrypted and outlives the stack would be lost with it.
    No statement depends on an encryption context for volumes, because HyperPod passes none.

    Attributes:
        key: the KMS key.
    """

    def __init__(self, scope: Construct, construct_id: str, *, alias: str | None = None) -> None:
        """Make the key.

        Args:
            alias: name below `alias/`, unique in account and Region; none by default.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        key = kms.Key(
            self,
            "Resource",
            alias=alias,
            description=f"Ultracluster {stack.stack_name}: file systems, volumes, buckets, logs, secrets",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        key.add_to_resource_policy(_logs(stack))
        key.add_to_resource_policy(_fsx_data_repositories(stack))
        self.key = cast("kms.IKey", key)  # the CDK's class and interface differ in names of arguments


def _logs(stack: Stack) -> iam.PolicyStatement:
    groups = stack.format_arn(
        service="logs", resource="log-group", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    return iam.PolicyStatement(
        sid="CloudWatchLogs",
        principals=[service("logs.amazonaws.com")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
        resources=["*"],
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )


def _fsx_data_repositories(stack: Stack) -> iam.PolicyStatement:
    roles = f"arn:{stack.partition}:iam::{stack.account}:{FSX_S3_ROLES}"
    return iam.PolicyStatement(
        sid="FsxDataRepositories",
        # a principal by name must exist when the policy is written; FSx makes its role with the association
        principals=[anyone()],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
        resources=["*"],
        conditions={
            "StringEquals": {
                "kms:CallerAccount": stack.account,
                "kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}",
            },
            "ArnLike": {"aws:PrincipalArn": roles},
        },
    )
