"""Look-ups in trees of constructs that the CDK makes: any of its releases may change their ids."""

from __future__ import annotations

from importlib.metadata import version
from typing import TypeVar

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import IConstruct

TESTED = "2.275.0"
"""Release of aws-cdk-lib with which the look-ups were last tested; that of requirements.lock."""

Kind = TypeVar("Kind")


class CdkTreeError(LookupError):
    """The installed CDK builds a construct in another way than the tested one."""


def below(scope: IConstruct, kind: type[Kind], *ids: str) -> Kind:
    """What the CDK made below `scope`, by the ids on the way to it.

    Raises:
        CdkTreeError: it is not there, or is something else.
    """
    found = scope
    for number, name in enumerate(ids):
        child = found.node.try_find_child(name)
        if child is None:
            raise _error(f"{scope.node.path} has no {'/'.join(ids[: number + 1])}")
        found = child
    if not isinstance(found, kind):
        raise _error(f"{found.node.path} is a {type(found).__name__}, not a {kind.__name__}")
    return found


def policy_of(role: IConstruct) -> iam.Policy:
    """The policy with the statements that were added to a role.

    Raises:
        CdkTreeError: the CDK keeps them elsewhere.
    """
    return below(role, iam.Policy, "DefaultPolicy")


def singletons(stack: Stack, prefix: str) -> list[IConstruct]:
    """The functions that the CDK makes once in a stack, by the beginning of their id.

    Raises:
        CdkTreeError: there is none.
    """
    found = [child for child in stack.node.children if child.node.id.startswith(prefix)]
    if not found:
        raise _error(f"{stack.node.path} has no {prefix}...")
    return found


def _error(what: str) -> CdkTreeError:
    return CdkTreeError(
        f"install aws-cdk-lib {TESTED}, with which this package was tested: release {version('aws-cdk-lib')} "
        f"builds its constructs in another way ({what})"
    )


__all__ = ["TESTED", "CdkTreeError", "below", "policy_of", "singletons"]
