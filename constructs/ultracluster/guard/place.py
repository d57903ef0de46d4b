"""Whether what a construct was given is where the construct is."""

from __future__ import annotations

from aws_cdk import IResource, Stack, Token
from constructs import Construct

from ultracluster.guard.judging import refuse


def same_region(scope: Construct, **resources: IResource | None) -> None:
    """An error at `scope` for each resource of another Region: AWS looks for it in that of the stack.

    Nothing is said where one of the two Regions is known only at deploy.

    Args:
        scope: the construct.
        resources: what it was given, by the name of the argument.
    """
    here = Stack.of(scope).region
    for name, resource in resources.items():
        if resource is None:
            continue
        there = resource.env.region
        if there != here and not Token.is_unresolved(here) and not Token.is_unresolved(there):
            refuse(
                scope,
                f"{name}: it is of Region {there}, and this stack of {here}, where AWS looks for it. "
                f"Instead: one of {here}, or a stack with env=cdk.Environment(region={there!r})",
            )


__all__ = ["same_region"]
