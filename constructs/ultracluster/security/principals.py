"""Principals with the type that the CDK's own signatures ask for.

The CDK's Python classes differ from the interfaces they implement in the names of some arguments, and
strict type checkers refuse one for the other.
"""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from ultracluster.catalog.service_trusts import service_trusts


def service(name: str) -> iam.IPrincipal:
    """An AWS service, e.g. `logs.amazonaws.com`, for policies of resources; roles ask for `trusted`."""
    return cast("iam.IPrincipal", iam.ServicePrincipal(name))


def trusted(scope: IConstruct, name: str, *, source_arn: str | None = None) -> iam.IPrincipal:
    """A service that assumes a role of ours, only for this account, where it says for whom it comes.

    Without it, whoever knows the role's ARN in another account could have the service use it for him (IAM
    User Guide, "The confused deputy problem").

    Args:
        scope: whose stack's account it is.
        name: a service of `catalog/service_trusts.json`.
        source_arn: the one resource that it may come for, where that is known before it is made.

    Raises:
        KeyError: nothing is known of the service.
    """
    stack, row = Stack.of(scope), service_trusts()[name]
    conditions: dict[str, Any] = {}
    match row.says:
        case "always":
            conditions["StringEquals"] = {"aws:SourceAccount": stack.account}
            like = source_arn or (row.arn and _of_stack(row.arn, stack))
            if like:
                conditions["ArnLike"] = {"aws:SourceArn": like}
        case "unknown":
            # a service that names nobody passes; one that names another account does not
            conditions["StringEqualsIfExists"] = {"aws:SourceAccount": stack.account}
        case "never":
            pass
    return cast("iam.IPrincipal", iam.ServicePrincipal(name, conditions=conditions or None))


def anyone() -> iam.IPrincipal:
    """Everyone; only with a condition that says who."""
    return cast("iam.IPrincipal", iam.AnyPrincipal())


def _of_stack(pattern: str, stack: Stack) -> str:
    return pattern.format(partition=stack.partition, region=stack.region, account=stack.account)
