"""Principals with the type that the CDK's own signatures ask for.

The CDK's Python classes differ from the interfaces they implement in the names of some arguments, and
strict type checkers refuse one for the other.
"""

from __future__ import annotations

from typing import cast

from aws_cdk import aws_iam as iam


def service(name: str) -> iam.IPrincipal:
    """An AWS service, e.g. `sagemaker.amazonaws.com`."""
    return cast("iam.IPrincipal", iam.ServicePrincipal(name))


def anyone() -> iam.IPrincipal:
    """Everyone; only with a condition that says who."""
    return cast("iam.IPrincipal", iam.AnyPrincipal())
