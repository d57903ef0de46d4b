"""What other stacks made, as the objects that constructs take; nothing of it is a resource here."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

from ultracluster.stacks.parts import NetworkParts, StorageParts
from ultracluster.storage.accounting_database import AccountingDatabase, IAccountingDatabase
from ultracluster.storage.lustre_file_system import ILustreFileSystem, LustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem, OpenZfsFileSystem


def nodes_group(stack: Stack, network: NetworkParts) -> ec2.ISecurityGroup:
    """The nodes' group, whose rules are where it was made."""
    return ec2.SecurityGroup.from_security_group_id(
        stack, "NodeSecurityGroup", network.security_group_id, mutable=False
    )


def scripts_bucket(stack: Stack, storage: StorageParts, key: kms.IKey) -> s3.IBucket:
    """Where the lifecycle scripts go."""
    own = storage.keys.buckets != storage.keys.volumes
    return s3.Bucket.from_bucket_attributes(
        stack,
        "ScriptsBucket",
        bucket_name=storage.scripts_bucket,
        encryption_key=kms.Key.from_key_arn(stack, "BucketsKey", storage.keys.buckets) if own else key,
    )


def upload_role(stack: Stack, storage: StorageParts) -> iam.IRole | None:
    """The role that uploads the scripts; None where the construct makes its own."""
    if storage.upload_role_arn is None:
        return None
    return iam.Role.from_role_arn(stack, "UploadRole", storage.upload_role_arn, mutable=False)


def lustre(stack: Stack, storage: StorageParts) -> ILustreFileSystem | None:
    """The Lustre file system; its rules for the nodes are where it was made, or `admit_nodes`."""
    mount = storage.lustre
    if mount is None:
        return None
    return LustreFileSystem.from_lustre_attributes(
        stack,
        "Lustre",
        file_system_id=mount.file_system_id,
        dns_name=mount.dns_name,
        mount_name=mount.mount_name,
        mount_path=mount.path,
        efa=mount.efa,
    )


def open_zfs(stack: Stack, storage: StorageParts) -> IOpenZfsFileSystem | None:
    """The OpenZFS file system, likewise."""
    mount = storage.open_zfs
    if mount is None:
        return None
    return OpenZfsFileSystem.from_open_zfs_attributes(
        stack,
        "OpenZfs",
        file_system_id=mount.file_system_id,
        dns_name=mount.dns_name,
        root_volume_id=mount.volume_id,
        mount_path=mount.path,
    )


def accounting(stack: Stack, storage: StorageParts, key: kms.IKey) -> IAccountingDatabase | None:
    """The accounting database, likewise; its secret is encrypted with the environment's key, unless it has
    its own."""
    database = storage.accounting
    if database is None:
        return None
    own = database.secret_key_arn
    if own is None and storage.keys.secrets != storage.keys.volumes:
        own = storage.keys.secrets
    secret = secretsmanager.Secret.from_secret_attributes(
        stack,
        "AccountingSecret",
        # whether the random characters at its end are there decides nothing: it is used as it is
        secret_partial_arn=database.secret_arn,
        encryption_key=kms.Key.from_key_arn(stack, "AccountingKey", own) if own else key,
    )
    return AccountingDatabase.from_accounting_attributes(
        stack,
        "Accounting",
        endpoint=database.endpoint,
        secret=secret,
        port=database.port,
        database_name=database.database_name,
        username=database.username,
    )
