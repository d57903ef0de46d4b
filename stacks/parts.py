"""What crosses from one stack to another: few values under stable names, so that no export blocks a deploy.

Every part is exported whether or not anyone reads it today: an export that vanishes with its last reader
would have to be removed before that reader is updated, and CloudFormation refuses that. The names do not
depend on logical ids.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import CfnOutput, Fn, Stack, Token

from ultracluster.orchestrators.parts import Accounting, LustreMount, OpenZfsMount


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkParts:
    """Ids of the network that nodes and file systems are in."""

    vpc_id: str
    vpc_cidr: str
    subnet_id: str
    security_group_id: str
    database_subnet_ids: tuple[str, ...] = ()
    control_plane_subnet_ids: tuple[str, ...] = ()
    """Of an EKS control plane, in two zones or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParts:
    """What the cluster must know of the storage."""

    key_arn: str
    scripts_bucket: str
    lustre: LustreMount | None = None
    open_zfs: OpenZfsMount | None = None
    accounting: Accounting | None = None


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
