"""The customer-managed KMS key of one environment (AWS KMS Developer Guide, "Key policies")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.model.orchestrators import Launcher
from ultracluster.security.principals import anyone, service

# FSx reads and writes the linked S3 objects as a role of its own for each file system
# (FSx for Lustre User Guide, "Working with server-side encrypted Amazon S3 buckets").
FSX_S3_ROLES = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"

# Auto Scaling User Guide, "Required AWS KMS key policy for use with encrypted volumes"
AUTO_SCALING = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
SPOT = "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
"""Launches Spot instances with encrypted volumes (EC2 User Guide, "Service-linked role for Spot Instance
requests")."""
FLEET = "role/aws-service-role/ec2fleet.amazonaws.com/AWSServiceRoleForEC2Fleet"
"""Launches a fleet's (EC2 User Guide, "EC2 Fleet prerequisites")."""
# AWS PCS User Guide, "Required KMS key policy for use with encrypted EBS volumes in AWS PCS"
PCS = "role/aws-service-role/pcs.amazonaws.com/AWSServiceRoleForPCS"
LAUNCHERS: Mapping[Launcher, str] = {
    "auto-scaling": AUTO_SCALING,
    "fleet": FLEET,
    "computing-service": PCS,
    "spot": SPOT,
}
"""The service-linked role of each service that launches nodes."""


class ClusterKey(Construct):
    """A key with yearly rotation that encrypts file systems, volumes, buckets, logs and secrets.

    It is always retained once it was made: whatever it encrypted and outlives the stack would be lost with
    it. No statement depends on an encryption context for volumes, because HyperPod passes none.

    Attributes:
        key: the KMS key.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        alias: str | None = None,
        launched_by: Sequence[str] = (),
    ) -> None:
        """Make the key.

        Args:
            alias: name below `alias/`, unique in account and Region; none by default.
            launched_by: service-linked roles that launch instances with encrypted volumes, `AUTO_SCALING`
                (EKS managed node groups) or `PCS`: no IAM policy can give them the key.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        key = kms.Key(
            self,
            "Resource",
            alias=alias,
            description=f"Ultracluster {stack.stack_name}: file systems, volumes, buckets, logs, secrets",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        key.add_to_resource_policy(_logs(stack))
        key.add_to_resource_policy(_fsx_data_repositories(stack))
        for number, role in enumerate(launched_by):
            for statement in _launches(stack, role, "" if number == 0 else str(number + 1)):
                key.add_to_resource_policy(statement)
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


def _launches(stack: Stack, role: str, number: str) -> list[iam.PolicyStatement]:
    # as above: the role is there only once the service was used in this account
    who = {
        "StringEquals": {"kms:CallerAccount": stack.account},
        "ArnLike": {"aws:PrincipalArn": f"arn:{stack.partition}:iam::{stack.account}:{role}"},
    }
    return [
        iam.PolicyStatement(
            sid=f"LaunchNodes{number}",
            principals=[anyone()],
            actions=[
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey*",
                "kms:ReEncrypt*",
            ],
            resources=["*"],
            conditions=who,
        ),
        iam.PolicyStatement(
            sid=f"AttachVolumes{number}",
            principals=[anyone()],
            actions=["kms:CreateGrant"],
            resources=["*"],
            conditions={**who, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]
