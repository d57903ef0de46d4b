"""The stack of file systems and accounting database: what holds data and is slow to make.

It waits for the network and the key, knows nothing of the cluster, and holds nothing besides the data that
could fail: associations with S3 are in a stack of their own.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.lustre import NewLustre, lustre_of
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs, Storage
from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.model.addresses import subnets
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.stacks.keys import Keys
from ultracluster.stacks.parts import FileSystemParts, NetworkParts, crossing, removal
from ultracluster.storage.accounting_database import AccountingDatabase
from ultracluster.storage.lustre_file_system import LustreFileSystem
from ultracluster.storage.open_zfs_file_system import OpenZfsFileSystem


class StorageStack(Stack):
    """File systems and accounting database that do not exist yet."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        network: NetworkParts,
        keys: Keys,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: file systems, accounting database",
        )  # fmt: skip
        already_judged(self)
        self._cluster = cluster
        self._settings = cluster.environment.storage
        self._network = network
        self._vpc = existing_vpc(self, "Vpc", network.vpc_id, cidr=network.vpc_cidr)
        self._subnet = existing_subnet(self, "Nodes", network.subnet_id)
        self._nodes = ec2.SecurityGroup.from_security_group_id(
            self, "NodeSecurityGroup", network.security_group_id, mutable=False
        )
        self._key = kms.Key.from_key_arn(self, "Key", keys.file_systems)
        self._keys = keys
        accounting, database_id = self._accounting()
        self.parts = FileSystemParts(
            lustre=self._lustre(), open_zfs=self._open_zfs(), accounting=accounting, database_id=database_id
        )

    def _lustre(self) -> LustreMount | None:
        config = self._settings.lustre
        if config is None or isinstance(config, ExistingLustre):
            return existing_lustre(config)
        file_system = LustreFileSystem(
            self,
            "Lustre",
            vpc=self._vpc,
            subnet=self._subnet,
            config=_without_repositories(config),
            key=self._key,
            removal_policy=removal(self._cluster.environment),
        )
        file_system.admit(self, "LustreClients", clients=self._nodes)
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
        config = self._settings.openzfs
        if config is None or isinstance(config, ExistingOpenZfs):
            return existing_open_zfs(config)
        file_system = OpenZfsFileSystem(
            self,
            "OpenZfs",
            vpc=self._vpc,
            subnet=self._subnet,
            clients_cidr=str(subnets(self._cluster).nodes),
            config=config,
            key=self._key,
            removal_policy=removal(self._cluster.environment),
        )
        file_system.admit(self, "OpenZfsClients", clients=self._nodes)
        file_system_id = crossing(self, "OpenZfsId", file_system.file_system_id)
        crossing(self, "OpenZfsSecurityGroupId", file_system.security_group_id)
        return OpenZfsMount(
            dns_name=crossing(self, "OpenZfsDnsName", file_system.dns_name),
            path=config.mount_path,
            volume_id=crossing(self, "OpenZfsVolumeId", file_system.root_volume_id),
            file_system_id=file_system_id,
        )

    def _accounting(self) -> tuple[Accounting | None, str | None]:
        config = self._settings.accounting_database
        if config is None or isinstance(config, ExistingDatabase):
            return existing_accounting(config), None
        own = self._keys.secrets != self._keys.file_systems
        key = kms.Key.from_key_arn(self, "SecretsKey", self._keys.secrets) if own else self._key
        database = AccountingDatabase(
            self,
            "Accounting",
            vpc=self._vpc,
            subnets=[
                existing_subnet(self, f"DatabaseSubnet{number}", subnet_id)
                for number, subnet_id in enumerate(
                    config.subnet_ids or self._network.database_subnet_ids, start=1
                )
            ],
            config=config,
            key=key,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            if self._cluster.environment.protect
            else RemovalPolicy.SNAPSHOT,
        )
        database.admit(self, "AccountingClients", clients=self._nodes)
        accounting = Accounting(
            endpoint=crossing(self, "AccountingEndpoint", database.endpoint),
            secret_arn=crossing(self, "AccountingSecretArn", database.secret_arn),
            port=database.port,
            database_name=config.database_name,
        )
        return accounting, crossing(self, "AccountingId", database.instance_id)


def _without_repositories(config: NewLustre) -> NewLustre:
    """The associations are in a stack of their own."""
    if not lustre_of(config).data_repositories:
        return config
    return config.model_copy(update={"data_repositories": {}})


def existing_file_systems(storage: Storage) -> FileSystemParts:
    """The parts where there is no file system and no database to make."""
    lustre, open_zfs, database = storage.lustre, storage.openzfs, storage.accounting_database
    return FileSystemParts(
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
