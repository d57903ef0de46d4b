"""File systems and accounting database: what holds data and is slow to make.

They wait for the network and the key, and know nothing of the cluster.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import (
    Cross,
    FileSystem,
    FileSystemParts,
    MadeFileSystems,
    NetworkParts,
    removal,
)
from ultracluster.config.lustre import LustreSettings, NewLustre, lustre_of
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs, Storage
from ultracluster.model import Cluster
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.model.parent_zone import exports_homes_to_vpc
from ultracluster.observability.log_groups import add_lustre_errors
from ultracluster.storage.accounting_database import AccountingDatabase
from ultracluster.storage.lustre_file_system import LustreFileSystem
from ultracluster.storage.open_zfs_file_system import OpenZfsFileSystem


def add_storage(
    scope: Construct,
    cluster: Cluster,
    *,
    network: NetworkParts,
    key: kms.IKey,
    cross: Cross,
    given: FileSystemParts | None = None,
) -> FileSystemParts:
    """Add the file systems and the accounting database that do not exist yet, and admit the nodes to them.

    Args:
        given: takes the place of what the environment asks for.
    """
    given = given or FileSystemParts()
    make = _Storage(scope, cluster, network, key, cross)
    accounting, database, database_id = make.accounting() if given.accounting is None else (None, None, None)
    storage = cluster.environment.storage
    lustre, lustre_mount = make.lustre(storage.lustre) if given.lustre is None else (None, None)
    further = {
        name: make.lustre(config, name.capitalize())
        for name, config in storage.further_lustre.items()
        if name not in given.further_lustre
    }
    open_zfs, open_zfs_mount = make.open_zfs() if given.open_zfs is None else (None, None)
    parts = FileSystemParts(
        lustre=lustre_mount,
        further_lustre={name: mount for name, (_, mount) in further.items() if mount},
        open_zfs=open_zfs_mount,
        accounting=accounting,
        database_id=database_id,
        group_ids=_groups(storage),
        further_group_ids=_further_groups(storage),
        made=MadeFileSystems(
            lustre=lustre,
            further_lustre={name: file_system for name, (file_system, _) in further.items() if file_system},
            open_zfs=open_zfs,
            accounting=database,
        ),
    )
    return parts.with_given(given)


class _Storage:
    """Each of them, where it is asked for: the construct and what others must know of it."""

    def __init__(
        self, scope: Construct, cluster: Cluster, network: NetworkParts, key: kms.IKey, cross: Cross
    ) -> None:
        self._scope = scope
        self._cluster = cluster
        self._settings = cluster.environment.storage
        self._network = network
        self._key = key_for(scope, cluster.environment, "file_systems", key)
        self._secrets = key_for(scope, cluster.environment, "secrets", key)
        self._cross = cross
        self._vpc = network.vpc(scope)
        self._subnet = network.subnet(scope)
        self._nodes = network.connectable(scope)

    def lustre(
        self, config: LustreSettings | None, named: str = ""
    ) -> tuple[LustreFileSystem | None, LustreMount | None]:
        """`named`: what the ids of a further one begin with; those of the first never change."""
        if config is None or isinstance(config, ExistingLustre):
            return None, existing_lustre(config)
        file_system = LustreFileSystem(
            self._scope,
            f"{named}Lustre",
            vpc=self._vpc,
            subnet=self._subnet,
            config=_without_repositories(config),
            key=self._key,
            removal_policy=removal(self._cluster.environment),
        )
        file_system.admit(self._scope, f"{named}LustreClients", clients=self._nodes)
        add_lustre_errors(file_system, self._cluster, log_group=file_system.log_group)
        file_system_id = self._cross(self._scope, f"{named}LustreId", file_system.file_system_id)
        assert file_system.security_group
        group_id = file_system.security_group.security_group_id
        self._cross(self._scope, f"{named}LustreSecurityGroupId", group_id)
        return file_system, LustreMount(
            dns_name=self._cross(self._scope, f"{named}LustreDnsName", file_system.dns_name),
            mount_name=self._cross(self._scope, f"{named}LustreMountName", file_system.mount_name),
            path=config.mount_path,
            efa=file_system.efa,
            file_system_id=file_system_id,
        )

    def open_zfs(self) -> tuple[OpenZfsFileSystem | None, OpenZfsMount | None]:
        config = self._settings.openzfs
        if config is None or isinstance(config, ExistingOpenZfs):
            return None, existing_open_zfs(config)
        network = self._cluster.environment.network
        file_system = OpenZfsFileSystem(
            self._scope,
            "OpenZfs",
            vpc=self._vpc,
            subnet=self._subnet,
            clients_cidr=None if exports_homes_to_vpc(network) else self._network.nodes_cidr,
            config=config,
            key=self._key,
            removal_policy=removal(self._cluster.environment),
        )
        file_system.admit(self._scope, "OpenZfsClients", clients=self._nodes)
        file_system_id = self._cross(self._scope, "OpenZfsId", file_system.file_system_id)
        assert file_system.security_group
        self._cross(self._scope, "OpenZfsSecurityGroupId", file_system.security_group.security_group_id)
        return file_system, OpenZfsMount(
            dns_name=self._cross(self._scope, "OpenZfsDnsName", file_system.dns_name),
            path=config.mount_path,
            volume_id=self._cross(self._scope, "OpenZfsVolumeId", file_system.root_volume_id),
            file_system_id=file_system_id,
        )

    def accounting(self) -> tuple[Accounting | None, AccountingDatabase | None, str | None]:
        config = self._settings.accounting_database
        if config is None or isinstance(config, ExistingDatabase):
            return existing_accounting(config), None, None
        protect = self._cluster.environment.protect
        if config.require_tls is None:
            config = config.model_copy(update={"require_tls": self._cluster.traits.slurmdbd_tls is True})
        database = AccountingDatabase(
            self._scope,
            "Accounting",
            vpc=self._vpc,
            subnets=self._network.database_subnets(self._scope, config.subnet_ids),
            config=config,
            key=self._secrets,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if protect else RemovalPolicy.SNAPSHOT,
        )
        database.admit(self._scope, "AccountingClients", clients=self._nodes)
        # the master's: clusters that were deployed before slurmdbd had a user of its own import it until they
        # are updated, and CloudFormation neither changes nor removes an export in use
        self._cross(self._scope, "AccountingSecretArn", database.master_secret.secret_arn)
        self._cross(self._scope, "AccountingUserFunction", database.user.function_name)  # run by people
        accounting = Accounting(
            endpoint=self._cross(self._scope, "AccountingEndpoint", database.endpoint),
            secret_arn=self._cross(self._scope, "AccountingUserSecretArn", database.secret_arn),
            port=database.port,
            database_name=config.database_name,
            username=database.username,
        )
        return accounting, database, self._cross(self._scope, "AccountingId", database.instance_identifier)


def _without_repositories(config: NewLustre) -> NewLustre:
    """The associations are a part of their own."""
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
        further_lustre={
            name: mount
            for name, file_system in storage.further_lustre.items()
            if isinstance(file_system, ExistingLustre) and (mount := existing_lustre(file_system))
        },
        group_ids=_groups(storage),
        further_group_ids=_further_groups(storage),
    )


def _groups(storage: Storage) -> dict[FileSystem, str]:
    """The security groups of what exists."""
    groups: dict[FileSystem, str] = {}
    if isinstance(storage.lustre, ExistingLustre):
        groups["lustre"] = storage.lustre.security_group_id
    if isinstance(storage.openzfs, ExistingOpenZfs):
        groups["open_zfs"] = storage.openzfs.security_group_id
    if isinstance(storage.accounting_database, ExistingDatabase):
        groups["accounting"] = storage.accounting_database.security_group_id
    return groups


def _further_groups(storage: Storage) -> dict[str, str]:
    further = storage.further_lustre.items()
    return {
        name: file_system.security_group_id
        for name, file_system in further
        if isinstance(file_system, ExistingLustre)
    }


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
