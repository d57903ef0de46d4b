"""The log group of an EKS control plane: EKS writes to one name and no other."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.security.log_retention import retention


def control_plane_logs(
    scope: Construct,
    construct_id: str,
    *,
    cluster_name: str,
    key: kms.IKey,
    days: int,
    removal_policy: RemovalPolicy,
) -> logs.LogGroup:
    """The group that EKS would make itself, without key and retention.

    Args:
        days: that a log is kept.
        removal_policy: what becomes of it when it leaves its stack.
    """
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=f"/aws/eks/{cluster_name}/cluster",
        encryption_key=key,
        retention=retention(days),
        removal_policy=removal_policy,
    )
