"""SageMaker HyperPod with Slurm, through the API (SageMaker Developer Guide, "SageMaker HyperPod")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultracluster.clusters.directory import let_ask_directory
from ultracluster.clusters.given import (
    Given,
    MadeCluster,
    scripts_bucket_of,
    use_bucket_key,
    waits_of_nodes,
)
from ultracluster.clusters.hyperpod.group import FurtherNetworks, accept_pins, common_properties, volumes
from ultracluster.clusters.job_access import deployed, job_role
from ultracluster.clusters.metrics import deployed as metrics_deployed
from ultracluster.clusters.metrics import let_write_metrics
from ultracluster.clusters.node_roles import GivenRoles, role_shares
from ultracluster.clusters.settings import HyperPodSlurmSettings
from ultracluster.clusters.state import deployed as state_deployed
from ultracluster.clusters.state import state_bundles
from ultracluster.config.environment import Access
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Role
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.model import Cluster
from ultracluster.model.leases import asked_of
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.every_role import every
from ultracluster.security.execution_role import HyperPodExecutionRole
from ultracluster.storage.accounting_database import IAccountingDatabase
from ultracluster.storage.buckets import DataBucket
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

ENTRIES = {
    "on-init-complete": "hyperpod_on_init_complete.sh",
    "on-create": "hyperpod_on_create.sh",
}
"""Entry script by lifecycle mode; it lies directly below the prefix, as HyperPod requires."""


class HyperPodSlurmCluster(MadeCluster):
    """A HyperPod cluster with Slurm in one subnet.

    What is not given is made below it: security group, key, roles, bucket of the scripts. Its nodes bring
    themselves to a software release and mount the file systems.

    Attributes:
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        cluster_id: last part of the ARN; names log streams and session targets.
        roles: what nodes may do, by their role: `controller`, `login`, `compute`.
        role: that of the compute nodes.
        job_role: what users' jobs may do in S3; None without `storage.job_buckets`.
        key: encrypts volumes and scripts.
        security_groups: of the nodes.
        scripts_bucket: where the lifecycle scripts are; None without any.
        cluster: what it was worked out to be, as rules and plans take it.
        resource: the `AWS::SageMaker::Cluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        further_subnets: Mapping[str, ec2.ISubnet] | None = None,
        vpc: ec2.IVpc | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        role: GivenRoles = None,
        key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        accounting: IAccountingDatabase | None = None,
        scripts_bucket: s3.IBucket | DataBucket | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        access: Access | None = None,
        config: HyperPodSlurm | None = None,
        upload_role: iam.IRole | None = None,
        metrics: MetricsDestination | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[HyperPodSlurmSettings],
    ) -> None:
        """Make the cluster.

        Args:
            subnet: the one subnet, so that the service has no zone to choose.
            further_subnets: in other zones of the same VPC, by zone id: of groups that name a `zone_id`. EFA
                does not leave a zone. By default none.
            vpc: of the subnet; needed where no `security_groups` are given; by default none.
            security_groups: of the nodes; each must allow all traffic from and to itself (`EfaSecurityGroup`,
                of which one is made by default).
            role: of all nodes, or a mapping by role of node; each gets the statements that these nodes need.
                By default one is made for each role of node. One for all lets every node read what only the
                controller needs: the accounting database's password.
            key: encrypts volumes, where the service can (continuous provisioning), and scripts. Made by
                default.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster.
            node_groups: node groups by name: one of role `controller`, with one node, and others. No default
                without `resolved`.
            lustre: mounted by the service; by default none.
            further_lustre: mounted by the lifecycle scripts beside `lustre`, each at its own path, by name;
                by default none.
            open_zfs: mounted by the service; by default none.
            accounting: external accounting database; only with continuous provisioning; by default none.
            scripts_bucket: where the lifecycle scripts go; made by default.
            release: software release of the nodes; the newest one for HyperPod with Slurm by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            access: `node_metadata` and `metadata_users`: who on a node reaches the instance metadata, and
                with it what the nodes' roles may; services only by default.
            config: the settings as a model, instead of by keyword; by default the keywords say them.
            upload_role: uploads the scripts, from `ultracluster.lifecycle.upload_role`; made here by default.
            metrics: where nodes write metrics: `ClusterObservability(...).destination`; by default they
                collect none.
            resolved: what an environment file comes to, instead of groups, names, release and settings; by
                default none, and the arguments say it.
            settings: fields of `HyperPodSlurm`: `provisioning`, `node_recovery`, `slurm_config_strategy`,
                `node_roles`, `slurm_settings`, `lifecycle`.

        Raises:
            ValueError: what is given contradicts itself, or no cluster can be made of it. What AWS would
                refuse otherwise is reported by the CDK's validation.
        """
        super().__init__(scope, construct_id)
        inputs = self._take(HyperPodSlurm, locals())
        self._config = cast("HyperPodSlurm", inputs.cluster.settings)
        self._further = FurtherNetworks(
            self, cluster=inputs.cluster, subnets=further_subnets, security_groups=self.security_groups
        )
        self._rights = self._make_rights(subnet, role)
        self.roles = {name: rights.role for name, rights in self._rights.items()}
        self.role = self.roles.get("compute") or next(iter(self.roles.values()))
        self._principal = every(self.roles.values())
        controller = self._rights.get("controller")  # that there is one is for the rules to say
        if accounting and controller:
            # slurmdbd runs there, and nowhere else (SageMaker Developer Guide, "Using an external accounting
            # database with SageMaker HyperPod Slurm clusters")
            controller.grant_read_secret(
                accounting.accounting.secret_arn, accounting.accounting.secret_key_arn
            )
        ways = let_ask_directory(
            self, inputs.cluster, rights=self._distinct_rights, security_groups=self.security_groups
        )
        self.job_role = job_role(self, inputs.cluster, self.roles)
        let_write_metrics(inputs.cluster, metrics, self.roles.values())
        self.scripts_bucket = (
            scripts_bucket_of(self, scripts_bucket, self.key, self.cluster_name)
            if inputs.cluster.runs_scripts
            else None
        )
        with inputs.in_words_of_rules():
            self._bundle = self._upload(inputs, upload_role)
            self.resource = self._resource(subnet, accounting)
        accept_pins(self.resource, self.cluster)
        # its policy, not only the role, must be there before the first node is
        for rights in self._distinct_rights:
            rights.depend_on_policy(self.resource)
        self.resource.node.add_dependency(
            *waits_of_nodes(subnet, self.security_groups),
            *(other.internet_connectivity_established for other in self._further.subnets.values()),
            *self._admitted(),
            *ways,
            *([self._bundle] if self._bundle else ()),
        )
        self.cluster_arn = self.resource.attr_cluster_arn
        self.cluster_id = Fn.select(1, Fn.split("/", self.cluster_arn))

    def _make_rights(self, subnet: ec2.ISubnet, roles: GivenRoles) -> dict[Role, HyperPodExecutionRole]:
        """Of each role of node; one object where several have one role."""
        mirror = self.cluster.environment.software.mirror
        plans = asked_of(self.cluster, "training-plan")
        rights_by_role: dict[Role, HyperPodExecutionRole] = {}
        one_for_all = self._config.node_roles == "one"
        for share in role_shares(self, self.cluster, roles, one_for_all=one_for_all):
            rights = HyperPodExecutionRole(
                self,
                share.construct_id,
                cluster_name=self.cluster_name,
                key=self.key,
                nodes=share.nodes,
                subnet=subnet,
                further_subnets=list(self._further.subnets.values()),
                security_groups=self.security_groups,
                role=share.given,
            )
            if mirror:
                rights.grant_read_mirror(mirror)
            if "controller" in share.nodes and plans:
                rights.grant_read_plans(plans)
            rights_by_role |= dict.fromkeys(share.nodes, rights)
        return rights_by_role

    @property
    def _distinct_rights(self) -> list[HyperPodExecutionRole]:
        return list(dict.fromkeys(self._rights.values()))

    def _resource(self, subnet: ec2.ISubnet, accounting: IAccountingDatabase | None) -> sagemaker.CfnCluster:
        config, cluster = self._config, sagemaker.CfnCluster
        return cluster(
            self,
            "Resource",
            cluster_name=self.cluster_name,
            node_recovery=config.node_recovery.capitalize(),
            node_provisioning_mode="Continuous" if config.provisioning == "continuous" else None,
            orchestrator=cluster.OrchestratorProperty(
                slurm=cluster.ClusterOrchestratorSlurmConfigProperty(
                    slurm_config_strategy=(config.slurm_config_strategy or "").capitalize() or None,
                    accounting_database=_accounting(accounting),
                )
            ),
            vpc_config=cluster.VpcConfigProperty(
                security_group_ids=[group.security_group_id for group in self.security_groups],
                subnets=[subnet.subnet_id],
            ),
            instance_groups=[
                self._group(name, group) for name, group in self.cluster.environment.node_groups.items()
            ],
        )

    def _upload(self, inputs: Given, role: iam.IRole | None) -> ScriptBundle | None:
        if self.scripts_bucket is None:
            return None
        entry = ENTRIES[self._config.lifecycle].removesuffix(".sh")
        files = NodeFiles.of(entry, release=inputs.configurations.release)
        bundle = ScriptBundle(
            self,
            "Scripts",
            bucket=self.scripts_bucket,
            name=self.cluster_name,
            bundles=files.bundles(inputs.configurations.by_group, list(inputs.cluster.groups)),
            others=[*tools(inputs.configurations.of_all), *state_bundles(inputs.cluster)],
            deployed_values={
                "mounts": self._mounts(),
                **deployed(self.job_role),
                **state_deployed(inputs.cluster, self.scripts_bucket),
                **metrics_deployed(inputs.cluster, self._parts.metrics),
            },
            role=role,
        )
        for rights in self._distinct_rights:
            rights.grant_read_scripts(self.scripts_bucket, self.cluster_name)
        use_bucket_key(self.scripts_bucket, self.key, self)
        return bundle

    def _group(self, name: str, group: NodeGroup) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        cluster = sagemaker.CfnCluster
        # "Customer managed AWS KMS key encryption for SageMaker HyperPod": continuous provisioning only
        key = self.key if self._config.provisioning == "continuous" else None
        return cluster.ClusterInstanceGroupProperty(
            instance_group_name=name,
            instance_type=f"ml.{group.instance_type}",
            execution_role=self.roles[group.role].role_arn,
            slurm_config=cluster.ClusterSlurmConfigProperty(
                node_type=group.role.capitalize(),
                partition_names=[group.partition] if group.partition else None,
            ),
            life_cycle_config=self._lifecycle(name),
            instance_storage_configs=[*volumes(self.cluster.groups[name], key), *self._mounted(name)],
            **common_properties(group, self._further.of(group)),
        )

    def _mounted(self, group: str) -> list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
        """What the service mounts: of several Lustre file systems the first, the others are for our scripts.
        That it takes more than one of a kind is said nowhere."""
        own = (
            lustre for name, lustre in self._parts.lustres.items() if name in self.cluster.lustres_of(group)
        )
        return _mounted(next(own, None), self._parts.open_zfs)

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


def _mounted(
    lustre: ILustreFileSystem | None, open_zfs: IOpenZfsFileSystem | None
) -> list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
    cluster = sagemaker.CfnCluster
    mounts: list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty] = []
    if lustre:
        mounts.append(
            cluster.ClusterInstanceStorageConfigProperty(
                fsx_lustre_config=cluster.ClusterFsxLustreConfigProperty(
                    dns_name=lustre.dns_name, mount_name=lustre.mount_name, mount_path=lustre.mount_path
                )
            )
        )
    if open_zfs:
        mounts.append(
            cluster.ClusterInstanceStorageConfigProperty(
                fsx_open_zfs_config=cluster.ClusterFsxOpenZfsConfigProperty(
                    dns_name=open_zfs.dns_name, mount_path=open_zfs.mount_path
                )
            )
        )
    return mounts


def _accounting(
    accounting: IAccountingDatabase | None,
) -> sagemaker.CfnCluster.ClusterAccountingDatabaseProperty | None:
    if accounting is None:
        return None
    return sagemaker.CfnCluster.ClusterAccountingDatabaseProperty(
        endpoint=accounting.endpoint,
        port=accounting.port,
        name=accounting.database_name,
        secret_arn=accounting.accounting.secret_arn,
    )
