"""What a company's rules for its accounts ask of everything that is made in them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ultracluster.config.base import Model

PolicyArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]+$",
        max_length=2048,
        examples=["arn:aws:iam::111122223333:policy/TeamBoundary"],
    ),
]


class Governance(Model):
    """Names and bounds that a company's rules ask for (docs/company-accounts.md)."""

    permissions_boundary: PolicyArn | None = None
    """IAM policy that bounds every role: ours, those that the CDK makes for its custom resources, and those
    that ParallelCluster makes for its cluster."""
    role_path: (
        Annotated[
            str, Field(pattern=r"^(/[A-Za-z0-9_.,+@=-]+)+/$", max_length=512, examples=["/teams/training/"])
        ]
        | None
    ) = None
    """IAM path of every role and instance profile, with slashes around; `/` by default, and `/aws-pcs/` for
    the nodes of PCS. Another path is another role."""
    role_prefix: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,+@=-]+$", max_length=30, examples=["training-"])] | None
    ) = None
    """First characters of the name of every role and instance profile; by default CloudFormation names them
    after their stack. Another prefix is another role."""
    stack_prefix: (
        Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]*$", max_length=60, examples=["training-"])]
        | None
    ) = None
    """First characters of the name of every stack, before the environment's name. Another prefix is other
    stacks: what is deployed stays where it is, and nothing of it is taken over."""
    bootstrap_qualifier: (
        Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,9}$", examples=["training"])] | None
    ) = None
    """Qualifier of the account's CDK bootstrap (`cdk bootstrap --qualifier`), where it has one of its own."""


CDK_QUALIFIER = "hnb659fds"
"""Of a bootstrap without a qualifier of one's own (CDK Guide, "Customize AWS CDK bootstrapping")."""
