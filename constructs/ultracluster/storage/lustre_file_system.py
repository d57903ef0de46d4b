"""FSx for Lustre (FSx for Lustre User Guide).

Built on the L1, because the L2 has no fields for EFA, metadata, Intelligent-Tiering or logs.
"""

from __future__ import annotations

import jsii
from aws_cdk import ArnFormat, Aws, Fn, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.catalog.fsx import lustre
from ultracluster.config.lustre import NewLustre, lustre_of
from ultracluster.config.storage import (
    Backups,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.network.admission import ALL_TRAFFIC, LUSTRE, Admission, isolated_group
from ultracluster.storage.root_squash import RootSquashSetting


@jsii.implements(ec2.IConnectable)
class LustreFileSystem(Construct):
    """A Lustre file system with a security group of its own.

    That group never changes: changing a file system's list of groups replaces the file system and loses the
    data. Clients are admitted by rules (`admit`).

    Attributes:
        file_system_id: `fs-...`.
        dns_name: host name for mounting.
        mount_name: the name behind the slash when mounting; never assume "fsx".
        security_group_id: the file system's own group.
        efa: whether clients can reach it over EFA.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        config: NewLustre,
        key: kms.IKey,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the file system; `DataRepositories` ties it to S3.

        Args:
            vpc: VPC of the clients.
            subnet: the one subnet it is in: that of the clients, for EFA.
            config: what was asked for; check it with `ultracluster.rules` first.
            key: encrypts it. Scratch file systems use a key of AWS.
            removal_policy: what happens to it, and to the group without which it cannot be reached, when it
                leaves the stack. By default it stays, but for a creation that is rolled back.
        """
        super().__init__(scope, construct_id)
        facts = lustre_of(config)
        self.efa = facts.efa
        traffic = ALL_TRAFFIC if self.efa else LUSTRE
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="FSx for Lustre, own group",
            removal_policy=removal_policy,
        )
        itself = Admission(
            self, "Itself", clients=group.attr_group_id, servers=group.attr_group_id, traffic=traffic
        )
        self.resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=config.version,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.attr_group_id],
            storage_capacity=facts.capacity_gib,
            storage_type=lustre(config.deployment).storage_type,
            kms_key_id=None if isinstance(config, ScratchLustre) else key.key_arn,
            lustre_configuration=_configuration(config, self._log_group(config, key, removal_policy)),
        )
        self.resource.apply_removal_policy(removal_policy)
        Tags.of(self.resource).add("Name", self.node.path)
        for rule in itself.rules:  # else FSx finds port 988 closed and refuses the group
            rule.apply_removal_policy(removal_policy)
            self.resource.add_resource_dependency(rule)
        self.file_system_id = self.resource.ref
        self.dns_name = self.resource.attr_dns_name
        self.mount_name = self.resource.attr_lustre_mount_name
        self.security_group_id = group.attr_group_id
        self._connections = ec2.Connections(
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(
                    self, "Group", group.attr_group_id, allow_all_outbound=False
                )
            ],
            default_port=ec2.Port.all_traffic() if self.efa else ec2.Port.tcp_range(988, 1023),
        )
        if config.root_squash:
            RootSquashSetting(
                self, "RootSquash", file_system=self.resource, squash=config.root_squash, key=key
            )

    @property
    def connections(self) -> ec2.Connections:
        return self._connections

    def admit(self, scope: Construct, construct_id: str, *, clients: str) -> Admission:
        """Let the members of a security group mount it.

        Args:
            scope: where the rules live; a stack of the clients, if they come and go.
            construct_id: id below `scope`.
            clients: security group id.
        """
        return admit_to_lustre(
            scope, construct_id, clients=clients, file_system_group=self.security_group_id, efa=self.efa
        )

    def _log_group(
        self, config: NewLustre, key: kms.IKey, removal_policy: RemovalPolicy
    ) -> logs.LogGroup | None:
        if config.log_level == "disabled":
            return None
        made_once = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        return logs.LogGroup(
            self,
            "Logs",
            # FSx accepts only names that begin so; one that was retained must not stand in the way of a new
            # one
            log_group_name=f"/aws/fsx/{Stack.of(self).stack_name}-{self.node.addr[-8:]}-{made_once}",
            encryption_key=key,
            retention=logs.RetentionDays.SIX_MONTHS,
            removal_policy=removal_policy,
        )


def admit_to_lustre(
    scope: Construct, construct_id: str, *, clients: str, file_system_group: str, efa: bool
) -> Admission:
    """Rules between a client group and the group of a Lustre file system, whoever made it."""
    return Admission(
        scope,
        construct_id,
        clients=clients,
        servers=file_system_group,
        traffic=ALL_TRAFFIC if efa else LUSTRE,
        mutual=True,
    )


_LogConfiguration = fsx.CfnFileSystem.LogConfigurationProperty


def _configuration(
    config: NewLustre, log_group: logs.LogGroup | None
) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    facts = lustre_of(config)
    backups = facts.backups or Backups()
    return fsx.CfnFileSystem.LustreConfigurationProperty(
        deployment_type=lustre(config.deployment).api_type,
        data_compression_type=config.compression.upper(),
        per_unit_storage_throughput=facts.throughput_mbps_per_tib,
        drive_cache_type=config.drive_cache.upper() if isinstance(config, Persistent1HddLustre) else None,
        throughput_capacity=config.throughput_mbps if isinstance(config, IntelligentTieringLustre) else None,
        data_read_cache_configuration=_read_cache(config),
        metadata_configuration=_metadata(config),
        efa_enabled=True if facts.efa else None,
        automatic_backup_retention_days=backups.retention_days if facts.backups else None,
        daily_automatic_backup_start_time=backups.start_time,
        copy_tags_to_backups=True if backups.retention_days else None,
        weekly_maintenance_start_time=config.maintenance_window,
        log_configuration=_log_configuration(config, log_group),
    )


def _log_configuration(config: NewLustre, log_group: logs.LogGroup | None) -> _LogConfiguration | None:
    level = config.log_level.upper().replace("-", "_")
    if log_group is None:
        return None
    stack = Stack.of(log_group)
    arn = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=log_group.log_group_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return fsx.CfnFileSystem.LogConfigurationProperty(level=level, destination=arn)


def _metadata(config: NewLustre) -> fsx.CfnFileSystem.MetadataConfigurationProperty | None:
    if not isinstance(config, Persistent2SsdLustre | IntelligentTieringLustre):
        return None
    iops = config.metadata_iops
    if iops is None:
        return None
    if iops == "automatic":
        return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="AUTOMATIC")
    return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="USER_PROVISIONED", iops=iops)


def _read_cache(config: NewLustre) -> fsx.CfnFileSystem.DataReadCacheConfigurationProperty | None:
    if not isinstance(config, IntelligentTieringLustre):
        return None
    mode = {
        "none": "NO_CACHE",
        "proportional": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY",
        "sized": "USER_PROVISIONED",
    }[config.read_cache.mode]
    return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
        sizing_mode=mode, size_gib=config.read_cache.gib
    )
