"""Look-ups in trees of constructs that the CDK makes: any of its releases may change their ids.

What can do without does so, with a warning; what cannot names the release that was tested. `make cdk-range`
tries them at the lowest and the newest release that pyproject.toml allows.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TypeVar

from aws_cdk import Annotations, Stack
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
    node = scope
    for number, name in enumerate(ids):
        child = node.node.try_find_child(name)
        if child is None:
            raise _error(f"{scope.node.path} has no {'/'.join(ids[: number + 1])}")
        node = child
    if not isinstance(node, kind):
        raise _error(f"{node.node.path} is a {type(node).__name__}, not a {kind.__name__}")
    return node


def policy_of(role: IConstruct) -> IConstruct:
    """The policy with the statements that were added to a role, for dependencies and acknowledgements.

    The role itself where the CDK keeps them elsewhere: what waits for a construct waits for all below it.
    """
    return role.node.try_find_child("DefaultPolicy") or role


def singletons(stack: Stack, prefix: str) -> list[IConstruct]:
    """The functions that the CDK makes once in a stack, by the beginning of their id.

    They are asked for only to accept findings of cdk-nag on them: where there is none, a warning says so.
    """
    children = [child for child in stack.node.children if child.node.id.startswith(prefix)]
    if not children:
        what = _other(f"{stack.node.path} has no {prefix}...")
        Annotations.of(stack).add_warning_v2(
            "ultracluster:cdk-tree", f"{what}; until then cdk-nag may name functions of the CDK itself"
        )
    return children


def _error(what: str) -> CdkTreeError:
    return CdkTreeError(_other(what))


def _other(what: str) -> str:
    return (
        f"install aws-cdk-lib {TESTED}, with which this package was tested: release {version('aws-cdk-lib')} "
        f"builds its constructs in another way ({what})"
    )
