"""FSx for OpenZFS for home directories (FSx for OpenZFS User Guide)."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.storage import NewOpenZfs
from ultracluster.network.admission import NFS, Admission, isolated_group


class OpenZfsFileSystem(Construct):
    """An OpenZFS file system with a security group of its own; clients are admitted by rules.

    Attributes:
        file_system_id: `fs-...`.
        dns_name: host name for mounting.
        root_volume_id: `fsvol-...` of the volume that is mounted.
        security_group_id: the file system's own group.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        clients_cidr: str,
        config: NewOpenZfs,
        key: kms.IKey,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the file system.

        Args:
            vpc: VPC of the clients.
            subnet: the one subnet it is in.
            clients_cidr: IPv4 network whose hosts may mount the root volume.
            config: what was asked for.
            key: encrypts it.
            removal_policy: what happens to it and to its group when it leaves the stack. By default they
                stay, but for a creation that is rolled back.
        """
        super().__init__(scope, construct_id)
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="FSx for OpenZFS, own group",
            removal_policy=removal_policy,
        )
        file_system = fsx.CfnFileSystem
        self.resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="OPENZFS",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.attr_group_id],
            storage_capacity=config.capacity_gib,
            storage_type="SSD",
            kms_key_id=key.key_arn,
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
                                    clients=clients_cidr,
                                    # nodes make home directories for users as root
                                    options=["rw", "crossmnt", "no_root_squash"],
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
        self.security_group_id = group.attr_group_id

    def admit(self, scope: Construct, construct_id: str, *, clients: str) -> Admission:
        """Let the members of a security group mount it."""
        return admit_to_open_zfs(
            scope, construct_id, clients=clients, file_system_group=self.security_group_id
        )


def admit_to_open_zfs(
    scope: Construct, construct_id: str, *, clients: str, file_system_group: str
) -> Admission:
    """Rules between a client group and the group of an OpenZFS file system, whoever made it."""
    return Admission(scope, construct_id, clients=clients, servers=file_system_group, traffic=NFS)
