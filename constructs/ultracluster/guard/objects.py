"""Objects of the CDK that a construct is given: an id in the place of one is refused where it comes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

_SUBNET = "ec2.Subnet.from_subnet_id(scope, 'Subnet', {})"
_GROUP = "ec2.SecurityGroup.from_security_group_id(scope, 'Nodes', {})"
_KEY = "kms.Key.from_key_arn(scope, 'Key', {})"
_ROLE = "iam.Role.from_role_arn(scope, 'Role', {})"
_BUCKET = "s3.Bucket.from_bucket_name(scope, 'Bucket', {})"
_PLANE = "EksControlPlane.from_cluster_attributes(scope, 'ControlPlane', cluster_name={}, ...)"
_LUSTRE = "LustreFileSystem.from_lustre_attributes(scope, 'Lustre', file_system_id={}, ...)"

_OBJECTS: Mapping[str, str] = {
    "vpc": "ec2.Vpc.from_vpc_attributes(scope, 'Vpc', vpc_id={}, ...)",
    "subnet": _SUBNET,
    "subnets": _SUBNET,
    "control_plane_subnets": _SUBNET,
    "further_subnets": _SUBNET,
    "security_group": _GROUP,
    "security_groups": _GROUP,
    "primary_security_groups": _GROUP,
    "key": _KEY,
    "secrets_key": _KEY,
    "role": _ROLE,
    "upload_role": _ROLE,
    "scripts_bucket": _BUCKET,
    "bucket": _BUCKET,
    "log_bucket": _BUCKET,
    "placement_group": "ec2.PlacementGroup.from_placement_group_name(scope, 'Group', {})",
    "lustre": _LUSTRE,
    "further_lustre": _LUSTRE,
    "open_zfs": "OpenZfsFileSystem.from_open_zfs_attributes(scope, 'Home', file_system_id={}, ...)",
    "accounting": "AccountingDatabase.from_accounting_attributes(scope, 'Accounting', endpoint=..., ...)",
    "control_plane": _PLANE,
    "cluster": _PLANE,
    "metrics": "MetricsDestination.of({})",
}
"""Expressions that make an object of what exists, by name of the argument."""
_LISTS = ("subnets", "control_plane_subnets", "security_groups", "primary_security_groups")


class HoldsSecurityGroup(Protocol):
    """One of our constructs in the place of a security group: an `EfaSecurityGroup`."""

    @property
    def security_group(self) -> ec2.ISecurityGroup:
        """The group of the CDK."""
        ...


class HoldsBucket(Protocol):
    """One of our constructs in the place of a bucket: a `DataBucket`."""

    bucket: s3.Bucket


def plain_bucket(bucket: s3.IBucket | HoldsBucket) -> s3.IBucket:
    """The bucket itself, or the one that our construct holds."""
    return cast("s3.IBucket", getattr(bucket, "bucket", bucket))


def plain_groups(
    groups: Sequence[ec2.ISecurityGroup | HoldsSecurityGroup] | None,
) -> list[ec2.ISecurityGroup]:
    """The groups themselves, or those that our constructs hold."""
    return [cast("ec2.ISecurityGroup", getattr(group, "security_group", group)) for group in groups or ()]


def take_objects(scope: IConstruct, arguments: Mapping[str, Any]) -> None:
    """Refuse an id where an object is needed, a list where one is, and one where a list is.

    Args:
        scope: the construct.
        arguments: of its constructor by name, as `locals()` has them; others than objects are skipped.

    Raises:
        ValueError: names the argument, and what to write.
    """
    for name, instead in _OBJECTS.items():
        value = arguments.get(name)
        said = f"{type(scope).__name__}: {name}= must be"
        if isinstance(value, list | tuple):
            if name not in (*_LISTS, "further_subnets"):
                raise ValueError(f"{said} one object, and is a list. Instead: {name}=...[0]")
        elif name in _LISTS and value is not None and not isinstance(value, str):
            raise ValueError(f"{said} a list, and is one object. Instead: {name}=[...]")
        for part in _parts(value):
            if isinstance(part, str | int | float):
                raise ValueError(
                    f"{said} {'a list of objects' if name in _LISTS else 'an object'} of the CDK, and "
                    f"{part!r} is none. Instead: {instead.format(repr(part))}"
                )


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
