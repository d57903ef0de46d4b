"""Statements that the roles of all kinds of nodes have."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.base import s3_place

SESSION_CHANNELS = [
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
]
"""What the agent needs for Session Manager (Systems Manager User Guide, "Add Session Manager permissions to
an existing IAM role")."""
MIRROR_IS_READ = "The files of mirrored releases, read-only."
"""Why the wildcard of `read_below` is accepted for a mirror."""


def read_below(scope: Construct, uri: str, what: str) -> tuple[list[iam.PolicyStatement], str]:
    """Statements that let a role list a bucket and read what lies below an `s3://bucket/prefix`.

    Args:
        what: end of their ids: `Mirror` for `ListMirror` and `ReadMirror`.

    Returns:
        The statements, and the ARN of the files: a wildcard to be acknowledged.
    """
    bucket, prefix = s3_place(uri)
    arn = f"arn:{Stack.of(scope).partition}:s3:::{bucket}"
    files = f"{arn}/{prefix}/*" if prefix else f"{arn}/*"
    statements = [
        iam.PolicyStatement(sid=f"List{what}", actions=["s3:ListBucket"], resources=[arn]),
        iam.PolicyStatement(sid=f"Read{what}", actions=["s3:GetObject"], resources=[files]),
    ]
    return statements, files
