"""What a company's rules ask of everything that is made: `governance` of the environment file.

An own stack beside ours is held to the same by `govern(stack, environment.governance)`.
"""

from __future__ import annotations

import hashlib
import re
from typing import cast

import jsii
from aws_cdk import Aspects, CfnResource, IAspect, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.config.governance import Governance

NAMES = {"AWS::IAM::Role": "RoleName", "AWS::IAM::InstanceProfile": "InstanceProfileName"}
"""What has a path and a name of its own, and the property with the name."""
LONGEST_NAME = 64
"""Characters of a role's name (IAM User Guide, "IAM and AWS STS quotas"); a profile's may be longer."""
_QUALIFIER = "@aws-cdk/core:bootstrapQualifier"


def prepare(scope: Construct, governance: Governance) -> None:
    """What stacks must know before they are made: the qualifier of the account's bootstrap.

    Raises:
        ValueError: something stands in `scope` already, and was made for another qualifier.
    """
    qualifier = governance.bootstrap_qualifier
    if qualifier is None or scope.node.try_get_context(_QUALIFIER) == qualifier:
        return
    if scope.node.children:
        raise ValueError(
            f"bootstrap_qualifier {qualifier!r} comes too late: {scope.node.children[0].node.id!r} was made "
            f"for another one. Give the app context={{{_QUALIFIER!r}: {qualifier!r}}}, or build this "
            "environment in an app or stage of its own"
        )
    scope.node.set_context(_QUALIFIER, qualifier)


def govern(scope: Construct, governance: Governance) -> None:
    """Bound, place and name every role below `scope`, those that the CDK makes for custom resources included.

    Args:
        scope: a stack, or part of one.
        governance: of the environment.
    """
    if governance.permissions_boundary:
        # the CDK's own: it reaches its custom resources' roles, too, which are no `iam.Role`
        boundary = iam.ManagedPolicy.from_managed_policy_arn(
            scope, "PermissionsBoundary", governance.permissions_boundary
        )
        iam.PermissionsBoundary.of(scope).apply(boundary)
    if governance.role_path or governance.role_prefix:
        Aspects.of(scope).add(cast("IAspect", _Places(Stack.of(scope), governance)))


@jsii.implements(IAspect)
class _Places:
    """Gives roles and instance profiles their path, and the names that their prefix asks for."""

    def __init__(self, stack: Stack, governance: Governance) -> None:
        self._stack = stack
        self._path, self._prefix = governance.role_path, governance.role_prefix

    def visit(self, node: IConstruct) -> None:
        """Called by the CDK for each construct of a stack."""
        if not CfnResource.is_cfn_resource(node):
            return
        resource = cast("CfnResource", node)
        named = NAMES.get(resource.cfn_resource_type)
        if named is None:
            return
        if self._path:
            resource.add_property_override("Path", self._path)
        if self._prefix:
            resource.add_property_override(named, self._name(self._prefix, resource))

    def _name(self, prefix: str, resource: CfnResource) -> str:
        """Unique in the account, in which roles of all Regions are: a hash of Region and place ends it."""
        stack, place = self._stack, resource.node.path
        region = "" if Token.is_unresolved(stack.region) else stack.region
        # the path of a role that has a name can be changed by a new role only, which takes a new name
        digest = hashlib.sha256(f"{region}/{self._path}/{place}".encode()).hexdigest()[:8]
        words = re.sub(r"[^A-Za-z0-9]+", "-", place.removeprefix(stack.node.path).removesuffix("/Resource"))
        room = LONGEST_NAME - len(prefix) - len(digest) - 1
        return f"{prefix}{f'{stack.stack_name.removeprefix(prefix)}{words}'[:room].rstrip('-')}-{digest}"
