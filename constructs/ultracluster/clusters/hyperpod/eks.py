"""SageMaker HyperPod on an EKS control plane (SageMaker Developer Guide, "Orchestrating SageMaker HyperPod
clusters with Amazon EKS")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import CfnTag, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.interface import IEksControlPlane, issuer_url_of
from ultracluster.clusters.eks.system import System, add_system
from ultracluster.clusters.eks.volume_rights import EKS_TAG
from ultracluster.clusters.eks.volumes import give_volumes
from ultracluster.clusters.given import (
    Given,
    MadeCluster,
    control_plane_subnets_of,
    scripts_bucket_of,
    use_bucket_key,
    waits_of_nodes,
)
from ultracluster.clusters.hyperpod.addons import SPACES, HyperPodAddons
from ultracluster.clusters.hyperpod.checkpoint_tier import CheckpointTierAccess
from ultracluster.clusters.hyperpod.group import FurtherNetworks, accept_pins
from ultracluster.clusters.hyperpod.karpenter import CLUSTER_TAG, karpenter_role
from ultracluster.clusters.hyperpod.kubernetes_group import (
    EKS_ENTRY,
    checked_types,
    kubernetes_group,
    restricted_group,
    shared_environment,
)
from ultracluster.clusters.hyperpod.spaces import give_spaces
from ultracluster.clusters.metrics import addon_destination
from ultracluster.clusters.settings import HyperPodEksSettings
from ultracluster.config.base import is_token
from ultracluster.config.hyperpod_eks import KarpenterAutoscaling
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.kubernetes.hyperpod_eks import health_agent, karpenter_pools, namespace, service_rights
from ultracluster.kubernetes.task_governance import governance_resources
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.model import Cluster, Group
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.every_role import every
from ultracluster.security.execution_role import HyperPodExecutionRole
from ultracluster.storage.buckets import DataBucket
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem


class HyperPodEksCluster(MadeCluster):
    """HyperPod nodes in an EKS cluster, in one subnet.

    The order is what the service asks for: first its namespace, rights and health-monitoring agent in the
    EKS cluster, the nodes' role and their scripts, then the HyperPod cluster, then the pools of its
    Karpenter. The service itself makes the access entry of the nodes' role, with the rights of whoever
    deploys.

    Without a `control_plane` everything that Kubernetes needs is made, too: control plane, system nodes,
    add-ons, device plugins, scheduler, HyperPod's add-ons, volume claims.

    Attributes:
        cluster_name: name of the HyperPod cluster.
        cluster_arn: its ARN.
        cluster_id: last part of the ARN; names log streams and session targets.
        control_plane: the EKS cluster.
        role: what HyperPod's nodes may do; their pods have roles of their own, through EKS Pod Identity.
        roles: the same as `compute`, and that of the `system` nodes where they are made.
        key: encrypts volumes and scripts.
        security_groups: of the nodes.
        scripts_bucket: where the lifecycle scripts are.
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
        control_plane: IEksControlPlane | None = None,
        control_plane_subnets: Sequence[ec2.ISubnet] | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        role: iam.IRole | None = None,
        key: kms.IKey | ClusterKey | None = None,
        secrets_key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        scripts_bucket: s3.IBucket | DataBucket | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        agent_image: str | None = None,
        after: Sequence[IConstruct] = (),
        config: HyperPodEks | None = None,
        upload_role: iam.IRole | None = None,
        metrics: MetricsDestination | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[HyperPodEksSettings],
    ) -> None:
        """Make the cluster.

        Args:
            subnet: the one subnet of the nodes, so that the service has no zone to choose.
            further_subnets: in other zones of the same VPC, by zone id: of groups that name a `zone_id`. EFA
                does not leave a zone. By default none.
            vpc: of the subnet; needed where no `control_plane` is given. Rights of the inference operator are
                kept to it. By default none.
            control_plane: an EKS cluster with access entries (`API`), in the VPC of the subnet, with system
                nodes and device plugins; made by default.
            control_plane_subnets: of a control plane that is made: private subnets in two zones or more, each
                with 16 free addresses, and a way to AWS and to chart repositories. By default the private
                subnets of the VPC.
            security_groups: of the nodes; each must allow all traffic from and to itself, and reach the
                Kubernetes API. Those of the control plane by default.
            role: of the nodes; it gets the statements that they need. Made by default.
            key: encrypts volumes, where the service can (continuous provisioning), and scripts; that of the
                control plane by default.
            secrets_key: encrypts secrets in, and logs of, a control plane that is made; by default `key`.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster. The EKS cluster that is made has the same.
            node_groups: groups of role `compute` by name, and of role `system`, which EKS manages, where no
                `control_plane` is given; no default without `resolved`.
            lustre: mounted by pods; nodes prepare for it. With its claim `lustre` where no `control_plane` is
                given. By default none.
            further_lustre: mounted by pods, as claims `lustre-<name>`, by name; by default none.
            open_zfs: mounted by pods, as claim `home`; only where no `control_plane` is given; by default
                none.
            scripts_bucket: where the lifecycle scripts go; made by default.
            release: software release of the nodes; the newest one for HyperPod on EKS by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            agent_image: a copy of the health-monitoring agent's image; by default AWS's own of the Region.
            after: what else must be there first, for instance device plugins; by default none.
            config: the settings as a model, instead of by keyword; by default the keywords say them.
            upload_role: uploads the scripts, from `ultracluster.lifecycle.upload_role`; made here by default.
            metrics: where pods write metrics: `ClusterObservability(...).destination`; none collect any by
                default. To a `control_plane` that is given only HyperPod's own add-on is added.
            resolved: what an environment file comes to, instead of groups, names, release and settings; by
                default none, and the arguments say it.
            settings: fields of `HyperPodEks`: `provisioning`, `autoscaling`, `admins` and others.

        Raises:
            ValueError: what is given contradicts itself, or no cluster can be made of it: an unknown type,
                capacity that HyperPod does not have. What AWS would refuse otherwise is reported by the CDK's
                validation.
        """
        super().__init__(scope, construct_id)
        inputs = self._take(HyperPodEks, locals())
        self._vpc = vpc
        self._config = cast("HyperPodEks", inputs.cluster.settings)
        self._further = FurtherNetworks(
            self, cluster=inputs.cluster, subnets=further_subnets, security_groups=self.security_groups
        )
        parts = system = None
        if control_plane is None:
            if vpc is None:
                raise ValueError("HyperPodEksCluster: give control_plane=, or vpc= to make one")
            control_plane_subnets = control_plane_subnets_of(self, control_plane_subnets, vpc)
            allow_use(self, self.key, *inputs.cluster.launched_by)
            control_plane = EksControlPlane(
                self,
                "ControlPlane",
                cluster_name=self.cluster_name,
                config=self._config,
                vpc=vpc,
                subnets=control_plane_subnets,
                security_groups=self.security_groups,
                key=secrets_key or self.key,
            )
            with inputs.in_words_of_rules():
                parts = Construct(self, "System")
                system = add_system(
                    parts,
                    inputs.cluster,
                    configurations=inputs.configurations,
                    plane=control_plane,
                    subnet=subnet,
                    further_subnets=further_subnets,
                    security_groups=self.security_groups,
                    key=self.key,
                    metrics=metrics,
                    control_plane_subnets=control_plane_subnets,
                )
        self.control_plane = control_plane
        self._set_rights(control_plane, subnet, role, system)
        self.scripts_bucket = scripts_bucket_of(self, scripts_bucket, self.key, self.cluster_name)
        with inputs.in_words_of_rules():
            bundle = self._upload(inputs, upload_role)
            first = self._prepare(agent_image)
            self.resource = self._resource(subnet, bundle)
        accept_pins(self.resource, self.cluster)
        # its policy, not only the role, must be there before the first node is
        self._rights.depend_on_policy(self.resource)
        if parts and self._config.create_nodes == "after-system":
            self.resource.node.add_dependency(parts)
        self.resource.node.add_dependency(
            *first,
            bundle,
            *waits_of_nodes(subnet, self.security_groups, *control_plane.before_nodes, *after),
            *(other.internet_connectivity_established for other in self._further.subnets.values()),
        )
        self.cluster_arn = self.resource.attr_cluster_arn
        self.cluster_id = Fn.select(1, Fn.split("/", self.cluster_arn))
        if self._config.autoscaling:
            self._pools(self._config.autoscaling)
        if system:
            self._give_to_jobs(system, subnet, lustre, further_lustre, open_zfs)

    def _set_rights(
        self, plane: IEksControlPlane, subnet: ec2.ISubnet, role: iam.IRole | None, system: System | None
    ) -> None:
        """Roles of the nodes, with what groups and the mirror add to them."""
        self._rights = HyperPodExecutionRole(
            self,
            "Role",
            cluster_name=self.cluster_name,
            key=self.key,
            nodes=("compute",),
            subnet=subnet,
            further_subnets=list(self._further.subnets.values()),
            security_groups=self.security_groups,
            eks_cluster_arn=plane.cluster_arn,
            role=role,
        )
        self.role = self._rights.role
        self.roles = {"compute": self.role}
        if system and system.groups:  # one role for all of them
            self.roles["system"] = system.groups[0].role
        self._principal = every(self.roles.values())
        for group in self._groups.values():
            if group.restricted:  # their jobs have no role but this one
                self._rights.grant_data(reads=group.restricted.reads, writes=group.restricted.writes)
        mirror = self.cluster.environment.software.mirror
        if mirror:
            self._rights.grant_read_mirror(mirror)

    @property
    def _groups(self) -> dict[str, Group]:
        """HyperPod's; those of system nodes are managed by EKS."""
        return self.cluster.with_role("compute")

    def _upload(self, inputs: Given, role: iam.IRole | None) -> ScriptBundle:
        files = NodeFiles.of(EKS_ENTRY.removesuffix(".sh"), release=inputs.configurations.release)
        bundle = ScriptBundle(
            self,
            "Scripts",
            bucket=self.scripts_bucket,
            name=self.cluster_name,
            bundles=files.bundles(
                inputs.configurations.by_group,
                [name for name, group in self._groups.items() if group.restricted is None],
            ),
            others=tools(inputs.configurations.of_all),
            role=role,
        )
        self._rights.grant_read_scripts(self.scripts_bucket, self.cluster_name)
        use_bucket_key(self.scripts_bucket, self.key, self)
        return bundle

    def _prepare(self, agent_image: str | None) -> list[IConstruct]:
        """What the service asks for in the EKS cluster before its own is made."""
        kubectl, region = self.control_plane.kubectl, self.cluster.region
        if agent_image is None and is_token(region):
            raise ValueError(
                "HyperPodEksCluster: the image of HyperPod's health-monitoring agent is another one in each "
                "Region: give the stack its env=Environment(account=..., region=...), or agent_image="
            )
        used = [instance_type for group in self._groups.values() for instance_type in checked_types(group)]
        home = kubectl.add_manifest("HyperPodNamespace", namespace())
        rights = kubectl.add_manifest("HyperPodRights", *service_rights())
        agent = kubectl.add_manifest(
            "HyperPodHealthAgent", *health_agent(used, region=region, image=agent_image)
        )
        rights.node.add_dependency(home)
        agent.node.add_dependency(home)
        return [rights, agent]

    def _resource(self, subnet: ec2.ISubnet, bundle: ScriptBundle) -> sagemaker.CfnCluster:
        config, cluster = self._config, sagemaker.CfnCluster
        scales = config.autoscaling is not None
        # "Customer managed AWS KMS key encryption for SageMaker HyperPod": continuous provisioning only
        key = self.key if config.provisioning == "continuous" else None
        return cluster(
            self,
            "Resource",
            cluster_name=self.cluster_name,
            node_recovery=config.node_recovery.capitalize(),
            node_provisioning_mode="Continuous" if config.provisioning == "continuous" else None,
            orchestrator=cluster.OrchestratorProperty(
                eks=cluster.ClusterOrchestratorEksConfigProperty(cluster_arn=self.control_plane.cluster_arn)
            ),
            vpc_config=cluster.VpcConfigProperty(
                security_group_ids=[group.security_group_id for group in self.security_groups],
                subnets=[subnet.subnet_id],
            ),
            auto_scaling=(
                cluster.ClusterAutoScalingConfigProperty(mode="Enable", auto_scaler_type="Karpenter")
                if scales
                else None
            ),
            cluster_role=self._karpenter_role() if scales else None,
            # what the roles of the EBS driver and of Karpenter ask for; the CDK adds the stack's own tags
            tags=[
                CfnTag(key=EKS_TAG, value=self.control_plane.cluster_name),
                *([CfnTag(key=CLUSTER_TAG, value=self.cluster_name)] if scales else []),
            ],
            tiered_storage_config=_tiered(config.tiered_checkpoints_percent),
            instance_groups=[
                kubernetes_group(
                    group,
                    role=self.role,
                    scripts_uri=bundle.uris[name],
                    key=key,
                    network=self._further.of(group.settings),
                )
                for name, group in self._groups.items()
                if group.restricted is None
            ]
            or None,
            restricted_instance_groups=[
                restricted_group(group, role=self.role, key=key, network=self._further.of(group.settings))
                for group in self._groups.values()
                if group.restricted
            ]
            or None,
            restricted_instance_groups_config=(
                shared_environment(config.restricted_lustre) if config.restricted_lustre else None
            ),
        )

    def _karpenter_role(self) -> str:
        role = karpenter_role(self, "AutoScalingRole", key=self.key, cluster_name=self.cluster_name)
        return role.role_arn

    def _pools(self, autoscaling: KarpenterAutoscaling) -> None:
        idle = {
            name: group
            for name, group in self._groups.items()
            if group.settings.count == 0 and group.restricted is None
        }
        pools = self.control_plane.kubectl.add_manifest(
            "HyperPodPools",
            *karpenter_pools(
                {name: group.checked_type for name, group in idle.items()},
                max_nodes=autoscaling.max_nodes,
                idle_minutes=autoscaling.idle_minutes,
            ),
        )
        pools.node.add_dependency(self.resource)

    def _give_to_jobs(
        self,
        system: System,
        subnet: ec2.ISubnet,
        lustre: ILustreFileSystem | None,
        further_lustre: Mapping[str, ILustreFileSystem] | None,
        open_zfs: IOpenZfsFileSystem | None,
    ) -> None:
        """HyperPod's add-ons, and claims of volumes."""
        addons = HyperPodAddons(
            self,
            "Addons",
            config=self._config,
            cluster_name=self.control_plane.cluster_name,
            eks_cluster_arn=self.control_plane.cluster_arn,
            hyperpod_cluster_arn=self.cluster_arn,
            metrics=addon_destination(self.cluster, self._parts.metrics),
            issuer_url=issuer_url_of(self.control_plane),
            vpc=self._vpc,
            workspace_arn=self._parts.metrics.workspace_arn if self._parts.metrics else None,
            governance=governance_resources(self.cluster),
            after=[self.resource],
        )
        give_spaces(self.control_plane.kubectl, self.cluster, addon=addons.addons.get(SPACES))
        if self._config.checkpoint_tier:
            tier = CheckpointTierAccess(
                self,
                "CheckpointTier",
                cluster=self.cluster,
                tier=self._config.checkpoint_tier,
                kubectl=self.control_plane.kubectl,
                cluster_name=self.control_plane.cluster_name,
                eks_cluster_arn=self.control_plane.cluster_arn,
            )
            if tier.accounts and system.namespaces:
                tier.accounts.node.add_dependency(system.namespaces)
        give_volumes(
            self.control_plane.kubectl,
            self.cluster,
            lustre=lustre,
            further_lustre=further_lustre,
            open_zfs=open_zfs,
            system=system,
            after=self._admitted(),
        )


def _tiered(percent: int | None) -> sagemaker.CfnCluster.TieredStorageConfigProperty | None:
    """Left out, an update would leave them as they are: 0 says that they end."""
    if percent is None:
        return None
    if percent == 0:
        return sagemaker.CfnCluster.TieredStorageConfigProperty(mode="Disable")
    return sagemaker.CfnCluster.TieredStorageConfigProperty(
        mode="Enable", instance_memory_allocation_percentage=percent
    )
