"""What crosses from one stack to another: few values under stable names, so that no export blocks a deploy.

Every part is exported whether or not anyone reads it today: an export that vanishes with its last reader
would have to be removed before that reader is updated, and CloudFormation refuses that. The names do not
depend on logical ids.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import CfnOutput, Fn, RemovalPolicy, Stack, Token

from ultracluster.config import Environment
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.stacks.keys import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkParts:
    """Ids of the network that nodes and file systems are in."""

    vpc_id: str
    vpc_cidr: str
    subnet_id: str
    security_group_id: str
    route_table_id: str | None = None
    """Of the nodes' subnet; None where the subnet exists."""
    database_subnet_ids: tuple[str, ...] = ()
    control_plane_subnet_ids: tuple[str, ...] = ()
    """Of an EKS control plane, in two zones or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketParts:
    """Names of the buckets, and who fills one of them."""

    scripts: str
    data: str | None = None
    """The environment's own bucket for data; None unless an association asks for it."""
    upload_role_arn: str | None = None
    """Uploads the lifecycle scripts; None where the bucket exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemParts:
    """What is mounted, and the accounting database; None where there is none."""

    lustre: LustreMount | None = None
    open_zfs: OpenZfsMount | None = None
    accounting: Accounting | None = None
    database_id: str | None = None
    """Of an accounting database that is made here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParts:
    """What the cluster must know of everything that holds data."""

    keys: Keys
    scripts_bucket: str
    upload_role_arn: str | None = None
    lustre: LustreMount | None = None
    open_zfs: OpenZfsMount | None = None
    accounting: Accounting | None = None


def removal(environment: Environment) -> RemovalPolicy:
    """What happens to file systems, and to what they need, when they leave their stack.

    Nothing is retained when the stack that first creates it is rolled back: a file system that was never used
    would cost as much as one in use, and resources with fixed names would block the next attempt.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if environment.protect else RemovalPolicy.DESTROY


def crossing(stack: Stack, name: str, value: str) -> str:
    """Export `value` as `<stack>-<name>` and give what other stacks write instead of it.

    A value known at synth (an id from the environment file) needs no export and is given back as it is.
    """
    CfnOutput(
        stack,
        name,
        value=value,
        export_name=f"{stack.stack_name}-{name}" if Token.is_unresolved(value) else None,
    )
    return Fn.import_value(f"{stack.stack_name}-{name}") if Token.is_unresolved(value) else value
