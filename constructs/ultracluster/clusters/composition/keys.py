"""Which KMS key encrypts what: one for all, unless the environment names others by purpose."""

from __future__ import annotations

from typing import Literal, cast

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config import Environment
from ultracluster.config.storage import ExistingKey

Purpose = Literal["volumes", "file_systems", "buckets", "logs", "secrets"]
"""A field of `KeysByPurpose`."""


def key_for(scope: Construct, environment: Environment, purpose: Purpose, general: kms.IKey) -> kms.IKey:
    """The key that the environment names for a purpose; `general` where it names none."""
    named: ExistingKey | None = getattr(environment.storage.keys, purpose)
    if named is None:
        return general
    construct_id = f"{purpose.title().replace('_', '')}Key"
    known = scope.node.try_find_child(construct_id)
    return cast("kms.IKey", known) if known else kms.Key.from_key_arn(scope, construct_id, named.arn)
