"""Which KMS key encrypts what: one for all, unless the environment names others by purpose."""

from __future__ import annotations

from typing import Literal, cast

import jsii
from aws_cdk import Aspects, IAspect
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from ultracluster.config import Environment
from ultracluster.config.storage import ExistingKey
from ultracluster.storage.lustre_file_system import LustreFileSystem

Purpose = Literal["volumes", "file_systems", "buckets", "logs", "secrets"]
"""A field of `KeysByPurpose`."""


def key_for(scope: Construct, environment: Environment, purpose: Purpose, general: kms.IKey) -> kms.IKey:
    """The key that the environment names for a purpose; `general` where it names none."""
    named: ExistingKey | None = getattr(environment.storage.keys, purpose)
    if named is None:
        return general
    construct_id = f"{purpose.title().replace('_', '')}Key"
    existing = scope.node.try_find_child(construct_id)
    return cast("kms.IKey", existing) if existing else kms.Key.from_key_arn(scope, construct_id, named.arn)


def encrypt_logs(scope: Construct, environment: Environment) -> None:
    """Encrypt each log group below `scope` with the key that the environment names for logs, if there is one.

    A construct encrypts its log groups with the key of what they belong to, and the policy of a key for
    another purpose does not let CloudWatch Logs use it: the group would not be made. Those of Lustre stay
    with the key of file systems.
    """
    if key := environment.storage.keys.logs:
        Aspects.of(scope).add(cast("IAspect", _LogKey(key.arn)))


@jsii.implements(IAspect)
class _LogKey:
    def __init__(self, arn: str) -> None:
        self._arn = arn

    def visit(self, node: IConstruct) -> None:
        """Called by the CDK for each construct of a stack."""
        if not isinstance(node, logs.CfnLogGroup) or not node.kms_key_id:
            return
        if not any(isinstance(scope, LustreFileSystem) for scope in node.node.scopes):
            node.kms_key_id = self._arn
