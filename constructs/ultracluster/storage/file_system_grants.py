"""What a client may ask of FSx."""

from __future__ import annotations

from aws_cdk import aws_iam as iam


def grant_describe(grantee: iam.IGrantable) -> iam.Grant:
    """Let someone describe file systems: fsx:DescribeFileSystems is asked without an id, of all of them."""
    return iam.Grant.add_to_principal(
        grantee=grantee, actions=["fsx:DescribeFileSystems"], resource_arns=["*"]
    )
