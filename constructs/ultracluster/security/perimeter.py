"""Policies of VPC endpoints and buckets that keep data within an account or organization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Fn, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from ultracluster.model import endpoint_policy as statements
from ultracluster.model.perimeter import Perimeter
from ultracluster.security.principals import anyone


def endpoint_policy(scope: IConstruct, service: str, perimeter: Perimeter) -> Mapping[str, Any] | None:
    """The policy of one endpoint.

    Args:
        scope: in the stack of the endpoint, whose account and Region are meant.
        service: as in `com.amazonaws.<region>.<service>`.
        perimeter: whose principals and resources pass.

    Returns:
        None where AWS takes no policy for the service, or it is not known that it does.
    """
    stack = Stack.of(scope)
    region = None if Token.is_unresolved(stack.region) else stack.region
    place = statements.Place(
        account=stack.account,
        region=stack.region,
        partition=stack.partition,
        flat_region=None if region else Fn.join("", Fn.split("-", stack.region)),
        known_region=region,
    )
    return statements.endpoint_policy(service, perimeter, place)


def bucket_statement(scope: IConstruct, bucket_arn: str, perimeter: Perimeter) -> iam.PolicyStatement:
    """What refuses whoever is outside of the perimeter and no AWS service, whatever else the policy allows.

    Args:
        scope: in the stack of the bucket, whose account is meant.
        bucket_arn: of the bucket.
        perimeter: whose principals pass: this account's, and those of its accounts and its organization.
    """
    outside: dict[str, list[str]] = {"aws:PrincipalAccount": [Stack.of(scope).account, *perimeter.accounts]}
    if perimeter.organization:
        outside["aws:PrincipalOrgID"] = [perimeter.organization]
    return iam.PolicyStatement(
        sid="OnlyThePerimeter",
        effect=iam.Effect.DENY,
        principals=[anyone()],
        actions=["s3:*"],
        resources=[bucket_arn, f"{bucket_arn}/*"],
        # of several keys all must differ: one that a request lacks differs, too
        conditions={
            "StringNotEqualsIfExists": outside,
            # delivery of access logs; FSx and SageMaker come with a role of the account
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
        },
    )


__all__ = ["Perimeter", "bucket_statement", "endpoint_policy"]
