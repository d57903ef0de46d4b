"""SageMaker HyperPod with Slurm, through the API (SageMaker Developer Guide, "SageMaker HyperPod")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultracluster.clusters.hyperpod.group import common_properties, volumes
from ultracluster.clusters.parts import Accounting, LustreMount, OpenZfsMount
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.lifecycle.scripts import ENTRIES
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.model.mounts import told
from ultracluster.security.cdk_tree import policy_of
from ultracluster.security.execution_role import HyperPodExecutionRole


class HyperPodSlurmCluster(Construct):
    """A HyperPod cluster with Slurm in one subnet.

    Attributes:
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        cluster_id: last part of the ARN; names log streams and session targets.
        role: what the nodes may do.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        config: HyperPodSlurm,
        node_groups: Mapping[str, NodeGroup],
        subnet: ec2.ISubnet,
        security_groups: list[str],
        key: kms.IKey,
        scripts_bucket: s3.IBucket | None = None,
        script_configurations: ScriptConfigurations | None = None,
        lustre: LustreMount | None = None,
        open_zfs: OpenZfsMount | None = None,
        accounting: Accounting | None = None,
        mirror: str | None = None,
        role: HyperPodExecutionRole | None = None,
        upload_role: iam.IRole | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            cluster_name: unique in account and Region; a new name is a new cluster.
            config: provisioning, recovery, strategy and when lifecycle scripts run.
            node_groups: node groups by name.
            subnet: the one subnet, so that the service has no zone to choose.
            security_groups: ids; each must allow all traffic from and to itself.
            key: encrypts volumes, where the service can (continuous provisioning).
            scripts_bucket: where the lifecycle scripts go; needed unless `config.lifecycle` is "none".
            script_configurations: what the lifecycle scripts read as `cluster.json`, with it.
            lustre: mounted by the service.
            open_zfs: mounted by the service.
            accounting: external accounting database; only with continuous provisioning.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read.
            role: the nodes' role, made here by default.
            upload_role: uploads the scripts, from `ultracluster.lifecycle.upload_role`; made here by default.

        Raises:
            ValueError: scripts are wanted and there is no bucket for them, or no configuration of a group.
        """
        super().__init__(scope, construct_id)
        self.cluster_name = cluster_name
        self._config = config
        self._key = key
        self._mounts = _mounts(lustre, open_zfs)
        self.role = role or HyperPodExecutionRole(self, "Role", cluster_name=cluster_name, key=key)
        if accounting:
            self.role.grant_read_secret(accounting.secret_arn, accounting.secret_key_arn)
        if mirror:
            self.role.grant_read_mirror(mirror)
        mounts = told(lustre, open_zfs)
        self._bundle = self._upload(
            scripts_bucket, script_configurations, list(node_groups), mounts, upload_role
        )
        cluster = sagemaker.CfnCluster
        self.resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            node_recovery=config.node_recovery.capitalize(),
            node_provisioning_mode="Continuous" if config.provisioning == "continuous" else None,
            orchestrator=cluster.OrchestratorProperty(
                slurm=cluster.ClusterOrchestratorSlurmConfigProperty(
                    slurm_config_strategy=(config.slurm_config_strategy or "").capitalize() or None,
                    accounting_database=_accounting(accounting),
                )
            ),
            vpc_config=cluster.VpcConfigProperty(
                security_group_ids=security_groups, subnets=[subnet.subnet_id]
            ),
            instance_groups=[self._group(name, group) for name, group in node_groups.items()],
        )
        # its policy, not only the role, must be there before the first node is
        self.resource.node.add_dependency(policy_of(self.role.role))
        if self._bundle:
            self.resource.node.add_dependency(self._bundle)
        self.cluster_arn = self.resource.attr_cluster_arn
        self.cluster_id = Fn.select(1, Fn.split("/", self.cluster_arn))

    def _upload(
        self,
        bucket: s3.IBucket | None,
        configurations: ScriptConfigurations | None,
        groups: Sequence[str],
        mounts: Mapping[str, object],
        role: iam.IRole | None,
    ) -> ScriptBundle | None:
        if self._config.lifecycle == "none":
            return None
        if bucket is None or configurations is None:
            raise ValueError(
                f"lifecycle {self._config.lifecycle!r} needs a scripts_bucket and script_configurations"
            )
        entry = ENTRIES[self._config.lifecycle].removesuffix(".sh")
        files = NodeFiles.of(entry, release=configurations.release)
        bundle = ScriptBundle(
            self,
            "Scripts",
            bucket=bucket,
            name=self.cluster_name,
            bundles=files.bundles(configurations.by_group, groups),
            others=tools(configurations.of_all),
            deployed_values={"mounts": mounts},
            role=role,
        )
        self.role.grant_read_scripts(bucket, self.cluster_name)
        return bundle

    def _group(self, name: str, group: NodeGroup) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        cluster = sagemaker.CfnCluster
        # "Customer managed AWS KMS key encryption for SageMaker HyperPod": continuous provisioning only
        key = self._key if self._config.provisioning == "continuous" else None
        return cluster.ClusterInstanceGroupProperty(
            instance_group_name=name,
            instance_type=f"ml.{group.instance_type}",
            execution_role=self.role.role.role_arn,
            slurm_config=cluster.ClusterSlurmConfigProperty(
                node_type=group.role.capitalize(),
                partition_names=[group.partition] if group.partition else None,
            ),
            life_cycle_config=self._lifecycle(name),
            instance_storage_configs=[*volumes(group, key), *self._mounts],
            **common_properties(group),
        )

    def _lifecycle(self, group: str) -> sagemaker.CfnCluster.ClusterLifeCycleConfigProperty | None:
        if self._bundle is None:
            return None
        entry = ENTRIES[self._config.lifecycle]
        early = self._config.lifecycle == "on-create"
        return sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
            source_s3_uri=self._bundle.uris[group],
            on_create=entry if early else None,
            on_init_complete=None if early else entry,
        )


def _mounts(
    lustre: LustreMount | None, open_zfs: OpenZfsMount | None
) -> list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
    cluster = sagemaker.CfnCluster
    mounts: list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty] = []
    if lustre:
        mounts.append(
            cluster.ClusterInstanceStorageConfigProperty(
                fsx_lustre_config=cluster.ClusterFsxLustreConfigProperty(
                    dns_name=lustre.dns_name, mount_name=lustre.mount_name, mount_path=lustre.path
                )
            )
        )
    if open_zfs:
        mounts.append(
            cluster.ClusterInstanceStorageConfigProperty(
                fsx_open_zfs_config=cluster.ClusterFsxOpenZfsConfigProperty(
                    dns_name=open_zfs.dns_name, mount_path=open_zfs.path
                )
            )
        )
    return mounts


def _accounting(
    accounting: Accounting | None,
) -> sagemaker.CfnCluster.ClusterAccountingDatabaseProperty | None:
    if accounting is None:
        return None
    return sagemaker.CfnCluster.ClusterAccountingDatabaseProperty(
        endpoint=accounting.endpoint,
        port=accounting.port,
        name=accounting.database_name,
        secret_arn=accounting.secret_arn,
    )
