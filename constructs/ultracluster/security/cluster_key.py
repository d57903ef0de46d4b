"""The customer-managed KMS key of one environment (AWS KMS Developer Guide, "Key policies")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.guard import same_region, warn
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
KeyUse = Literal[Launcher, "logs", "data-repositories", "metrics", "alerts"]
"""Who must be admitted by the key's own policy, because no IAM policy of ours reaches them."""
_ALLOWED = "ultracluster:allowed"


class ClusterKey(Construct):
    """A key with yearly rotation that encrypts file systems, volumes, buckets, logs and secrets.

    By default it is retained once it was made: whatever it encrypted and outlives the stack would be lost
    with it. No statement depends on an encryption context for volumes, because HyperPod passes none.

    Attributes:
        key: the KMS key.
    """

    @classmethod
    def of(cls, scope: Construct, key: kms.IKey | ClusterKey | None) -> kms.IKey:
        """The key that was given, or one that all constructs of the stack share.

        Args:
            scope: whoever needs a key.
            key: what it was given; one of another Region than the stack is refused by the CDK's validation.
        """
        if key:
            plain_key = key.key if isinstance(key, ClusterKey) else key
            same_region(scope, key=plain_key)
            return plain_key
        stack = Stack.of(scope)
        existing = stack.node.try_find_child(_OF_STACK)
        return (existing if isinstance(existing, ClusterKey) else cls(stack, _OF_STACK)).key

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        alias: str | None = None,
        launched_by: Sequence[Launcher] = (),
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the key.

        Args:
            alias: name below `alias/`, unique in account and Region; none by default.
            launched_by: services that launch instances with encrypted volumes. Clusters that are given the
                key itself see to it (`allow_use`); name them where it reaches a cluster by its ARN. By
                default none.
            removal_policy: what happens to it when it leaves the stack; by default it is retained, but for a
                creation that is rolled back.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        key = kms.Key(
            self,
            "Resource",
            alias=alias,
            description=f"Ultracluster {stack.stack_name}: file systems, volumes, buckets, logs, secrets",
            enable_key_rotation=True,
            removal_policy=removal_policy,
        )
        self.key = cast("kms.IKey", key)  # the CDK's class and interface differ in names of arguments
        allow_use(self, self.key, "logs", "data-repositories", *launched_by)


_OF_STACK = "UltraclusterKey"


def allow_use(scope: Construct, key: kms.IKey, *uses: KeyUse) -> None:
    """Let services use a key, by its own policy: no IAM policy can give them the key. Each once for a key.

    The policy of a key that was imported cannot be changed: then a warning at `scope` says what has to stand
    in it.

    Args:
        scope: what needs the key to be used.
        key: made in this app, here or in another stack, or imported.
        uses: for what.
    """
    allowed = [str(entry.data) for entry in key.node.metadata if entry.type == _ALLOWED]
    for use in dict.fromkeys(uses):
        if use in allowed:
            continue
        launching = sum(allowed_use in LAUNCHERS for allowed_use in allowed)
        for statement in _statements(Stack.of(key), use, launching):
            if not key.add_to_resource_policy(statement).statement_added:
                _must_stand(scope, use, statement)
        key.node.add_metadata(_ALLOWED, use)
        allowed.append(use)


def _statements(stack: Stack, use: KeyUse, launching: int) -> list[iam.PolicyStatement]:
    if use == "logs":
        return [_logs(stack)]
    if use == "data-repositories":
        return [_fsx_data_repositories(stack)]
    if use == "metrics":
        return [_metrics(stack)]
    if use == "alerts":
        return [_alerts(stack)]
    return _launches(stack, LAUNCHERS[use], "" if launching == 0 else str(launching + 1))


def _must_stand(scope: Construct, use: KeyUse, statement: iam.PolicyStatement) -> None:
    """Say which statement an imported key needs."""
    sid = statement.sid
    text = json.dumps(Stack.of(scope).resolve(statement.to_json()), sort_keys=True)
    warn(
        scope,
        f"key-policy-{use}-{sid}",
        "the key was imported, so its policy is not changed here; for "
        f"{_WHAT_FOR.get(use, use)} it has to hold {text}",
    )


_WHAT_FOR: Mapping[KeyUse, str] = {
    "auto-scaling": "nodes that EC2 Auto Scaling launches with encrypted volumes",
    "fleet": "nodes that an EC2 fleet launches with encrypted volumes",
    "computing-service": "nodes that AWS PCS launches with encrypted volumes",
    "spot": "Spot instances with encrypted volumes",
    "logs": "log groups of CloudWatch Logs",
    "data-repositories": "FSx to read and write objects that it encrypts",
    "metrics": "metrics in Amazon Managed Service for Prometheus",
    "alerts": "services that send alerts to an encrypted SNS topic",
}
ALERTING = (
    "aps.amazonaws.com",
    "budgets.amazonaws.com",
    "cloudwatch.amazonaws.com",
    "events.amazonaws.com",
)
"""Services that send to the topic of alerts."""


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


def _metrics(stack: Stack) -> iam.PolicyStatement:
    """Amazon Managed Service for Prometheus User Guide, "Encryption at rest": the service makes grants in the
    name of who makes the workspace, and whoever asks it for metrics has them decrypted."""
    return iam.PolicyStatement(
        sid="Metrics",
        principals=[anyone()],
        actions=["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"],
        resources=["*"],
        conditions={
            "StringEquals": {
                "kms:CallerAccount": stack.account,
                "kms:ViaService": f"aps.{stack.region}.{stack.url_suffix}",
            }
        },
    )


def _alerts(stack: Stack) -> iam.PolicyStatement:
    """SNS Developer Guide, "Key management": who publishes to an encrypted topic needs its key. That
    a service says for which account it comes is not documented of all four: another account is refused."""
    return iam.PolicyStatement(
        sid="Alerts",
        principals=[service(name) for name in ALERTING],
        actions=["kms:Decrypt", "kms:GenerateDataKey*"],
        resources=["*"],
        conditions={"StringEqualsIfExists": {"aws:SourceAccount": stack.account}},
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
