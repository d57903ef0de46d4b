"""FSx for OpenZFS for home directories (FSx for OpenZFS User Guide)."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypedDict, Unpack, cast

import jsii
from aws_cdk import RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.storage import Backups, ExistingOpenZfs, NewOpenZfs, NfsRootSquash
from ultracluster.guard import Figure, report, settings_of
from ultracluster.guard.objects import take_objects
from ultracluster.model.mounts import OpenZfsMount
from ultracluster.network.admission import NFS, isolated_group
from ultracluster.network.existing import cidr_of
from ultracluster.network.server_connections import IServer, Server
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.storage.file_system_grants import grant_describe
from ultracluster.storage.nfs_root_squash import EXPORT, NfsRootSquashSetting


class OpenZfsArguments(TypedDict, total=False):
    """Fields of the configuration's model for a new OpenZFS file system, which says what each means."""

    deployment: Literal["single-az-1", "single-az-2", "single-az-ha-1", "single-az-ha-2"]
    capacity_gib: Figure
    throughput_mbps: Figure
    mount_path: str
    backups: Backups
    maintenance_window: str | None
    root_squash: NfsRootSquash | None


USUAL_DEPLOYMENT = "single-az-2"
"""Where the caller names none: the newer generation, without a standby."""
_USUAL_THROUGHPUT = {"single-az-1": 64, "single-az-ha-1": 64, "single-az-2": 160, "single-az-ha-2": 160}
"""MB/s where the caller names none: the smallest file server that the deployment has."""


class IOpenZfsFileSystem(IServer, Protocol):
    """An OpenZFS file system, made here or elsewhere."""

    @property
    def file_system_id(self) -> str: ...
    @property
    def dns_name(self) -> str: ...
    @property
    def root_volume_id(self) -> str:
        """`fsvol-...` of the volume that is mounted; empty where it is not known."""
        ...

    @property
    def mount_path(self) -> str:
        """Where nodes mount it."""
        ...

    @property
    def capacity_gib(self) -> int | None:
        """None where it is not known."""
        ...

    @property
    def mount(self) -> OpenZfsMount:
        """All that nodes must know to mount it."""
        ...

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone ask FSx for file systems, which knows no resources."""
        ...


class _OpenZfs(Server):
    """What made and imported file systems have in common."""

    file_system_id: str
    dns_name: str
    root_volume_id: str
    mount_path: str
    capacity_gib: int | None

    @property
    def mount(self) -> OpenZfsMount:
        """All that nodes must know to mount it."""
        return OpenZfsMount(
            dns_name=self.dns_name,
            path=self.mount_path,
            volume_id=self.root_volume_id,
            file_system_id=self.file_system_id,
        )

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone ask FSx for file systems."""
        return grant_describe(grantee)


@jsii.implements(ec2.IConnectable)
class OpenZfsFileSystem(_OpenZfs):
    """An OpenZFS file system with a security group of its own; clients are admitted by rules.

    Attributes:
        resource: the L1.
        config: its settings.
        file_system_id: `fs-...`.
        dns_name: host name for mounting.
        root_volume_id: `fsvol-...` of the volume that is mounted.
        mount_path: where nodes mount it.
        capacity_gib: its storage.
        security_group: the file system's own group.
        security_group_id: its id.
        key: encrypts it.
    """

    @classmethod
    def from_open_zfs_attributes(
        cls,
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        dns_name: str,
        root_volume_id: str = "",
        security_group: ec2.ISecurityGroup | None = None,
        mount_path: str = "/home",
        capacity_gib: int | None = None,
    ) -> IOpenZfsFileSystem:
        """An OpenZFS file system made elsewhere.

        Args:
            file_system_id: `fs-...`.
            dns_name: host name for mounting.
            root_volume_id: `fsvol-...` of its root volume; ParallelCluster asks for it; by default none.
            security_group: the file system's own group, to which rules for clients are added. Without it
                nobody is admitted: the nodes must be able to reach it already. By default none.
            mount_path: where nodes mount it; by default `/home`.
            capacity_gib: its storage; by default it is not known.
        """
        return _ImportedOpenZfs(
            scope,
            construct_id,
            mount=OpenZfsMount(
                dns_name=dns_name, path=mount_path, volume_id=root_volume_id, file_system_id=file_system_id
            ),
            group=security_group,
            capacity_gib=capacity_gib,
        )

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients_cidr: str | None = None,
        config: NewOpenZfs | None = None,
        key: kms.IKey | ClusterKey | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        **settings: Unpack[OpenZfsArguments],
    ) -> None:
        """Make the file system.

        Args:
            vpc: VPC of the clients.
            subnet: the one subnet it is in.
            clients_cidr: IPv4 network whose hosts may mount the root volume; by default the VPC's.
            config: its settings as an environment file has them, instead of `settings`; by default the
                keywords say them.
            key: encrypts it; by default a `ClusterKey`.
            security_group: its group; by default one of its own that nothing else is in.
            removal_policy: what happens to it and to its group when it leaves the stack. By default they
                stay, but for a creation that is rolled back.
            settings: `capacity_gib`, and the other fields of the model; `single-az-2` at 160 MB/s by default.

        Raises:
            ValueError: settings of the wrong shape. What FSx would refuse is reported when the app is
                synthesised.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        self.config = config = _made(config, settings)
        report(self, config)
        self.mount_path, self.capacity_gib = config.mount_path, config.capacity_gib
        self.key = ClusterKey.of(self, key)
        group = security_group or self._own_group(vpc, removal_policy)
        file_system = fsx.CfnFileSystem
        self.resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="OPENZFS",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.security_group_id],
            storage_capacity=config.capacity_gib,
            storage_type="SSD",
            kms_key_id=self.key.key_arn,
            open_zfs_configuration=file_system.OpenZFSConfigurationProperty(
                deployment_type=config.deployment.upper().replace("-", "_"),
                throughput_capacity=config.throughput_mbps,
                automatic_backup_retention_days=config.backups.retention_days,
                daily_automatic_backup_start_time=config.backups.start_time,
                copy_tags_to_backups=True,
                copy_tags_to_volumes=True,
                weekly_maintenance_start_time=config.maintenance_window,
                root_volume_configuration=file_system.RootVolumeConfigurationProperty(
                    data_compression_type="ZSTD",
                    nfs_exports=[
                        file_system.NfsExportsProperty(
                            client_configurations=[
                                file_system.ClientConfigurationsProperty(
                                    clients=clients_cidr or cidr_of(vpc, self),
                                    # nodes make home directories for users as root; `root_squash` is
                                    # set by a call, because a change here may replace the file system
                                    options=[*EXPORT, "no_root_squash"],
                                )
                            ]
                        )
                    ],
                ),
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        Tags.of(self.resource).add("Name", self.node.path)
        self.file_system_id = self.resource.ref
        self.dns_name = self.resource.attr_dns_name
        self.root_volume_id = self.resource.attr_root_volume_id
        self.security_group_id = group.security_group_id
        self._connect_through(group, NFS)
        if config.root_squash:
            NfsRootSquashSetting(
                self,
                "RootSquash",
                file_system=self.resource,
                clients=clients_cidr or cidr_of(vpc, self),
                exempt=config.root_squash.exempt_clients,
                key=self.key,
            )

    def _own_group(self, vpc: ec2.IVpc, removal_policy: RemovalPolicy) -> ec2.ISecurityGroup:
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="FSx for OpenZFS, own group",
            removal_policy=removal_policy,
        )
        return ec2.SecurityGroup.from_security_group_id(
            self, "Group", group.attr_group_id, allow_all_outbound=False
        )


@jsii.implements(ec2.IConnectable)
class _ImportedOpenZfs(_OpenZfs):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        mount: OpenZfsMount,
        group: ec2.ISecurityGroup | None,
        capacity_gib: int | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.file_system_id = mount.file_system_id
        self.dns_name = mount.dns_name
        self.root_volume_id = mount.volume_id
        self.mount_path = mount.path
        self.capacity_gib = capacity_gib
        self._connect_through(group, NFS)
        if ".fsx." in mount.dns_name:  # not a name that someone else gave it
            settings = ExistingOpenZfs.model_construct(
                deployment="existing", id=mount.file_system_id, dns_name=mount.dns_name, mount_path=mount.path
            )
            report(self, settings)


def _made(config: NewOpenZfs | None, settings: OpenZfsArguments) -> NewOpenZfs:
    keywords = cast("dict[str, Any]", settings)
    if config is None:
        deployment = settings.get("deployment", USUAL_DEPLOYMENT)
        usual: dict[str, Any] = {"deployment": deployment}
        if deployment in _USUAL_THROUGHPUT:
            usual["throughput_mbps"] = _USUAL_THROUGHPUT[deployment]
        keywords = {**usual, **keywords}
    return settings_of(NewOpenZfs, config, keywords, construct="OpenZfsFileSystem")
