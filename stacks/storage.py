"""The stack of what holds data: key, buckets, file systems, accounting database.

It knows nothing of the cluster.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.parts import NetworkParts, StorageParts, crossing
from ultracluster.config import Environment
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.orchestrators.parts import Accounting, LustreMount, OpenZfsMount
from ultracluster.rules.address_budget import subnets
from ultracluster.security.cluster_key import AUTO_SCALING, PCS, ClusterKey
from ultracluster.storage.accounting_database import AccountingDatabase
from ultracluster.storage.buckets import DataBucket, LogBucket
from ultracluster.storage.lustre_file_system import LustreFileSystem
from ultracluster.storage.open_zfs_file_system import OpenZfsFileSystem

_LAUNCHED_BY = {"eks": (AUTO_SCALING,), "pcs": (PCS,)}


class StorageStack(Stack):
    """Everything that holds data and does not exist yet."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        network: NetworkParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: file systems, buckets, key",
        )  # fmt: skip
        self._config = config
        self._removal = RemovalPolicy.RETAIN if config.protect else RemovalPolicy.DESTROY
        self._network = network
        self._vpc = existing_vpc(self, "Vpc", network.vpc_id, cidr=network.vpc_cidr)
        self._subnet = existing_subnet(self, "Nodes", network.subnet_id)
        self._key = self._make_key()
        scripts, data = self._buckets()
        self.parts = StorageParts(
            key_arn=crossing(self, "KeyArn", self._key.key_arn),
            scripts_bucket=crossing(self, "ScriptsBucketName", scripts),
            lustre=self._lustre(data),
            open_zfs=self._open_zfs(),
            accounting=self._accounting(),
        )
        if data:
            crossing(self, "DataBucketName", data)

    def _make_key(self) -> kms.IKey:
        if self._config.storage.key:
            return kms.Key.from_key_arn(self, "Key", self._config.storage.key.arn)
        return ClusterKey(
            self,
            "Key",
            alias=f"ultracluster/{self._config.name}",
            launched_by=_LAUNCHED_BY.get(self._config.orchestrator.kind, ()),
        ).key

    def _buckets(self) -> tuple[str, str | None]:
        storage = self._config.storage
        if storage.scripts_bucket and not self._config.makes_data_bucket:
            return storage.scripts_bucket.name, None
        if storage.log_bucket:
            log: s3.IBucket = s3.Bucket.from_bucket_name(self, "Log", storage.log_bucket.name)
        else:
            log = LogBucket(self, "Log").bucket

        def bucket(name: str, prefix: str) -> str:
            made = DataBucket(self, name, key=self._key, log_bucket=log, log_prefix=prefix)
            return made.bucket.bucket_name

        scripts = storage.scripts_bucket.name if storage.scripts_bucket else bucket("Scripts", "scripts/")
        return scripts, bucket("Data", "data/") if self._config.makes_data_bucket else None

    def _lustre(self, data_bucket: str | None) -> LustreMount | None:
        config = self._config.storage.lustre
        if config is None or isinstance(config, ExistingLustre):
            return existing_lustre(config)
        repositories = self._config.data_repositories
        file_system = LustreFileSystem(
            self,
            "Lustre",
            vpc=self._vpc,
            subnet=self._subnet,
            config=config,
            key=self._key,
            buckets={folder: data_bucket or "" for folder, one in repositories.items() if one.bucket is None},
            removal_policy=self._removal,
        )
        file_system.admit(self, "LustreClients", clients=self._network.security_group_id)
        file_system_id = crossing(self, "LustreId", file_system.file_system_id)
        crossing(self, "LustreSecurityGroupId", file_system.security_group_id)
        return LustreMount(
            dns_name=crossing(self, "LustreDnsName", file_system.dns_name),
            mount_name=crossing(self, "LustreMountName", file_system.mount_name),
            path=config.mount_path,
            efa=file_system.efa,
            file_system_id=file_system_id,
        )

    def _open_zfs(self) -> OpenZfsMount | None:
        config = self._config.storage.openzfs
        if config is None or isinstance(config, ExistingOpenZfs):
            return existing_open_zfs(config)
        file_system = OpenZfsFileSystem(
            self,
            "OpenZfs",
            vpc=self._vpc,
            subnet=self._subnet,
            clients_cidr=str(subnets(self._config).nodes),
            config=config,
            key=self._key,
            removal_policy=self._removal,
        )
        file_system.admit(self, "OpenZfsClients", clients=self._network.security_group_id)
        file_system_id = crossing(self, "OpenZfsId", file_system.file_system_id)
        crossing(self, "OpenZfsSecurityGroupId", file_system.security_group_id)
        return OpenZfsMount(
            dns_name=crossing(self, "OpenZfsDnsName", file_system.dns_name),
            path=config.mount_path,
            volume_id=crossing(self, "OpenZfsVolumeId", file_system.root_volume_id),
            file_system_id=file_system_id,
        )

    def _accounting(self) -> Accounting | None:
        config = self._config.storage.accounting_database
        if config is None or isinstance(config, ExistingDatabase):
            return existing_accounting(config)
        database = AccountingDatabase(
            self,
            "Accounting",
            vpc=self._vpc,
            subnet_ids=config.subnet_ids or self._network.database_subnet_ids,
            config=config,
            key=self._key,
            protect=self._config.protect,
        )
        database.admit(self, "AccountingClients", clients=self._network.security_group_id)
        return Accounting(
            endpoint=crossing(self, "AccountingEndpoint", database.endpoint),
            secret_arn=crossing(self, "AccountingSecretArn", database.secret_arn),
            port=database.port,
            database_name=config.database_name,
        )


def existing_storage(config: Environment) -> StorageParts:
    """The parts of a storage that exists as a whole."""
    storage = config.storage
    assert storage.key and storage.scripts_bucket
    lustre, open_zfs, database = storage.lustre, storage.openzfs, storage.accounting_database
    return StorageParts(
        key_arn=storage.key.arn,
        scripts_bucket=storage.scripts_bucket.name,
        lustre=existing_lustre(lustre) if lustre is None or isinstance(lustre, ExistingLustre) else None,
        open_zfs=existing_open_zfs(open_zfs)
        if open_zfs is None or isinstance(open_zfs, ExistingOpenZfs)
        else None,
        accounting=existing_accounting(database)
        if database is None or isinstance(database, ExistingDatabase)
        else None,
    )


def existing_lustre(config: ExistingLustre | None) -> LustreMount | None:
    if config is None:
        return None
    return LustreMount(
        dns_name=config.dns_name,
        mount_name=config.mount_name,
        path=config.mount_path,
        efa=config.efa,
        file_system_id=config.id,
    )


def existing_open_zfs(config: ExistingOpenZfs | None) -> OpenZfsMount | None:
    if config is None:
        return None
    return OpenZfsMount(
        dns_name=config.dns_name,
        path=config.mount_path,
        volume_id=config.volume_id or "",
        file_system_id=config.id,
    )


def existing_accounting(config: ExistingDatabase | None) -> Accounting | None:
    if config is None:
        return None
    return Accounting(
        endpoint=config.endpoint,
        secret_arn=config.secret_arn,
        port=config.port,
        database_name=config.database_name,
        secret_key_arn=config.secret_key_arn,
        username=config.username or "",
    )
