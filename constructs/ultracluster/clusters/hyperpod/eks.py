"""SageMaker HyperPod on an EKS control plane (SageMaker Developer Guide, "Orchestrating SageMaker HyperPod
clusters with Amazon EKS")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from ultracluster.catalog import InstanceType
from ultracluster.catalog.hyperpod_eks import mig_profiles
from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.hyperpod.group import common_properties, volumes
from ultracluster.clusters.hyperpod.karpenter import karpenter_role
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.kubernetes.hyperpod_eks import health_agent, karpenter_pools, namespace, service_rights
from ultracluster.kubernetes.labels import node_labels
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.lifecycle.scripts import EKS_ENTRY
from ultracluster.model.capacity import decide
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.security.cdk_tree import policy_of
from ultracluster.security.execution_role import HyperPodExecutionRole


class HyperPodEksCluster(Construct):
    """HyperPod nodes in an EKS cluster, in one subnet.

    The order is what the service asks for: first its namespace, rights and health-monitoring agent in the
    EKS cluster, the nodes' role and their scripts, then the HyperPod cluster, then the pools of its
    Karpenter. The service itself makes the access entry of the nodes' role, with the rights of whoever
    deploys.

    Attributes:
        cluster_name: name of the HyperPod cluster.
        cluster_arn: its ARN.
        cluster_id: last part of the ARN; names log streams and session targets.
        role: what the nodes may do; their pods have roles of their own, through EKS Pod Identity.
        resource: the `AWS::SageMaker::Cluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        config: HyperPodEks,
        node_groups: Mapping[str, NodeGroup],
        instance_types: Mapping[str, InstanceType],
        eks_cluster_arn: str,
        kubectl: Kubectl,
        region: str,
        subnet: ec2.ISubnet,
        security_groups: Sequence[str],
        key: kms.IKey,
        scripts_bucket: s3.IBucket,
        script_configurations: ScriptConfigurations,
        mirror: str | None = None,
        agent_image: str | None = None,
        after: Sequence[IConstruct] = (),
        role: HyperPodExecutionRole | None = None,
        upload_role: iam.IRole | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            cluster_name: unique in account and Region; a new name is a new cluster.
            config: provisioning, recovery, autoscaling and options.
            node_groups: HyperPod's groups by name; without those that EKS manages.
            instance_types: what the catalogue knows, by the names that the groups use.
            eks_cluster_arn: the EKS cluster, with access entries (`API`), in the VPC of the subnet.
            kubectl: the way into the EKS cluster.
            region: decides where the health-monitoring agent's image comes from.
            subnet: the one subnet, so that the service has no zone to choose.
            security_groups: ids; each must allow all traffic from and to itself, and reach the Kubernetes
                API.
            key: encrypts volumes, where the service can (continuous provisioning).
            scripts_bucket: where the lifecycle scripts go.
            script_configurations: what the lifecycle scripts read as `cluster.json`.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read.
            agent_image: a copy of the health-monitoring agent's image.
            after: what else must be there first, for instance device plugins.
            role: the nodes' role, made here by default.
            upload_role: uploads the scripts, from `ultracluster.lifecycle.upload_role`; made here by default.

        Raises:
            ValueError: a group's capacity cannot be had with HyperPod, a GPU lacks the MIG profile, or a
                group has no script configuration.
        """
        super().__init__(scope, construct_id)
        self.cluster_name = cluster_name
        self._config = config
        self._key = key
        self._types = instance_types
        self.role = role or HyperPodExecutionRole(
            self, "Role", cluster_name=cluster_name, key=key, eks_cluster_arn=eks_cluster_arn
        )
        if mirror:
            self.role.grant_read_mirror(mirror)
        files = NodeFiles.of(EKS_ENTRY.removesuffix(".sh"), release=script_configurations.release)
        bundle = ScriptBundle(
            self,
            "Scripts",
            bucket=scripts_bucket,
            name=cluster_name,
            bundles=files.bundles(script_configurations.by_group, node_groups),
            others=tools(script_configurations.of_all),
            role=upload_role,
        )
        self.role.grant_read_scripts(scripts_bucket, cluster_name)
        used = [instance_types[name] for group in node_groups.values() for name in _names(group)]
        home = kubectl.add_manifest("HyperPodNamespace", namespace())
        rights = kubectl.add_manifest("HyperPodRights", *service_rights())
        agent = kubectl.add_manifest(
            "HyperPodHealthAgent", *health_agent(used, region=region, image=agent_image)
        )
        rights.node.add_dependency(home)
        agent.node.add_dependency(home)
        cluster = sagemaker.CfnCluster
        scales = config.autoscaling is not None
        self.resource = cluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            node_recovery=config.node_recovery.capitalize(),
            node_provisioning_mode="Continuous" if config.provisioning == "continuous" else None,
            orchestrator=cluster.OrchestratorProperty(
                eks=cluster.ClusterOrchestratorEksConfigProperty(cluster_arn=eks_cluster_arn)
            ),
            vpc_config=cluster.VpcConfigProperty(
                security_group_ids=list(security_groups), subnets=[subnet.subnet_id]
            ),
            auto_scaling=(
                cluster.ClusterAutoScalingConfigProperty(mode="Enable", auto_scaler_type="Karpenter")
                if scales
                else None
            ),
            cluster_role=karpenter_role(self, "AutoScalingRole", key=key).role_arn if scales else None,
            tiered_storage_config=(
                cluster.TieredStorageConfigProperty(
                    mode="Enable", instance_memory_allocation_percentage=config.tiered_checkpoints_percent
                )
                if config.tiered_checkpoints_percent
                else None
            ),
            instance_groups=[self._group(name, group, bundle) for name, group in node_groups.items()],
        )
        # its policy, not only the role, must be there before the first node is
        policy = policy_of(self.role.role)
        for first in (rights, agent, policy, bundle, *after):
            self.resource.node.add_dependency(first)
        self.cluster_arn = self.resource.attr_cluster_arn
        self.cluster_id = Fn.select(1, Fn.split("/", self.cluster_arn))
        if config.autoscaling:
            idle = {name: group for name, group in node_groups.items() if group.count == 0}
            pools = kubectl.add_manifest(
                "HyperPodPools",
                *karpenter_pools(
                    {name: instance_types[group.instance_type] for name, group in idle.items()},
                    max_nodes=config.autoscaling.max_nodes,
                    idle_minutes=config.autoscaling.idle_minutes,
                ),
            )
            pools.node.add_dependency(self.resource)

    def _group(
        self, name: str, group: NodeGroup, bundle: ScriptBundle
    ) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        cluster = sagemaker.CfnCluster
        known = self._types[group.instance_type]
        decision = decide(group.capacity, orchestrator="hyperpod-eks", placement="none", instance_type=known)
        if decision.severity == "error":
            raise ValueError(f"{name}: {decision.message}")
        if group.mig_profile and group.mig_profile not in mig_profiles(known):
            raise ValueError(f"{name}: the GPUs of {known.name} have no MIG profile {group.mig_profile}")
        types = [f"ml.{one}" for one in _names(group)]
        return cluster.ClusterInstanceGroupProperty(
            instance_group_name=name,
            instance_type=None if group.instance_types else types[0],
            instance_requirements=(
                cluster.InstanceRequirementsProperty(instance_types=types) if group.instance_types else None
            ),
            execution_role=self.role.role.role_arn,
            life_cycle_config=cluster.ClusterLifeCycleConfigProperty(
                source_s3_uri=bundle.uris[name], on_create=EKS_ENTRY
            ),
            # "Customer managed AWS KMS key encryption for SageMaker HyperPod": continuous provisioning only
            instance_storage_configs=volumes(
                group, self._key if self._config.provisioning == "continuous" else None
            ),
            kubernetes_config=cluster.ClusterKubernetesConfigProperty(
                labels=node_labels(name, group, known),
                taints=[
                    cluster.ClusterKubernetesTaintProperty(
                        key=taint.key, value=taint.value or None, effect=taint.effect
                    )
                    for taint in group.taints
                ]
                or None,
            ),
            **common_properties(group),
        )


def _names(group: NodeGroup) -> tuple[str, ...]:
    return (group.instance_type, *group.instance_types)
