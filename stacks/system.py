"""The stack of a Kubernetes cluster's system nodes and of what runs on them.

Add-ons, device plugins, schedulers and their queues, Karpenter. It waits for the control plane and the ways
out and is made while the accelerated nodes are, which need none of it to join.
"""

from __future__ import annotations

from typing import assert_never, cast

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.addons import EksAddons
from ultracluster.clusters.eks.karpenter import EksKarpenter
from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.clusters.hyperpod.addons import cert_manager
from ultracluster.clusters.job_scheduling import JobScheduling
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.charts import device_charts, job_charts
from ultracluster.kubernetes.karpenter import karpenter_charts
from ultracluster.kubernetes.mpi_operator import mpi_operator
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import block_storage_class
from ultracluster.kubernetes.tolerations import system_tolerations
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet
from ultracluster.software.node_image import full_image_release
from ultracluster.stacks.control_plane import ControlPlaneParts, control_plane_parts
from ultracluster.stacks.parts import NetworkParts, crossing

SUFFIX = "system"


class SystemStack(Stack):
    """System nodes that EKS manages, and everything that is installed into the cluster for all users."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        network: NetworkParts,
        key_arn: str,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: system nodes, add-ons, charts",
        )  # fmt: skip
        settings = cluster.kubernetes
        assert settings
        self._cluster = cluster
        self._key = kms.Key.from_key_arn(self, "Key", key_arn)
        plane = control_plane_parts(cluster)
        kubectl = plane.kubectl(self)
        system = self._groups(settings, plane, network)
        EksAddons(
            self,
            "Addons",
            cluster_name=plane.cluster_name,
            kubernetes_version=settings.kubernetes_version,
            key=self._key,
            file_systems=cluster.lustre is not None,
            after=system,
            tolerations=system_tolerations(cluster),
        )
        self._install(settings, plane, kubectl, system)
        match settings:
            case Eks():
                if settings.karpenter:
                    self._karpenter(settings, plane, kubectl, system)
            case HyperPodEks():
                if settings.training_operator or settings.inference:
                    cert_manager(
                        self,
                        config=settings,
                        cluster_name=plane.cluster_name,
                        after=system,
                        tolerations=system_tolerations(cluster),
                    )
            case _ as never:
                assert_never(never)

    def _groups(
        self, settings: Eks | HyperPodEks, plane: ControlPlaneParts, network: NetworkParts
    ) -> list[IConstruct]:
        environment = self._cluster.environment
        groups = self._cluster.with_role("system")
        if not groups:
            return []
        match settings:
            case Eks():
                repair, max_unavailable = settings.node_repair, settings.max_unavailable
            case HyperPodEks():
                repair, max_unavailable = None, 1
            case _ as never:
                assert_never(never)
        role = node_role(self, "NodeRole", cluster_arn=plane.cluster_arn, mirror=environment.software.mirror)
        subnet = existing_subnet(self, "Nodes", network.subnet_id)
        security_group = ec2.SecurityGroup.from_security_group_id(
            self, "NodeSecurityGroup", network.security_group_id, mutable=False
        )
        return [
            EksNodeGroup(
                self,
                f"Group-{name}",
                name=name,
                group=group.settings,
                instance_type=group.checked_type,
                cluster=plane.entry,
                image_release=full_image_release(environment, name),
                # the CDK's class and interface differ in names of arguments
                role=cast("iam.IRole", role),
                subnet=subnet,
                security_groups=[security_group],
                key=self._key,
                after=[role],
                repair=repair,
                max_unavailable=max_unavailable,
            ).resource
            for name, group in groups.items()
        ]

    def _install(
        self,
        settings: Eks | HyperPodEks,
        plane: ControlPlaneParts,
        kubectl: Kubectl,
        system: list[IConstruct],
    ) -> None:
        cluster = self._cluster
        for chart in (*device_charts(cluster), *job_charts(cluster)):
            kubectl.add_chart(f"Chart-{chart.name}", chart)
        if settings.mpi_operator:
            operator = mpi_operator(
                image=settings.mpi_operator_image, tolerations=system_tolerations(cluster)
            )
            kubectl.add_manifest("MpiOperator", *operator)
        kubectl.add_manifest("BlockStorage", block_storage_class(key_arn=self._key.key_arn))
        JobScheduling(
            self,
            "Scheduling",
            kubectl=kubectl,
            cluster_name=plane.cluster_name,
            scheduling=scheduling(cluster),
            after=system,
        )

    def _karpenter(
        self, settings: Eks, plane: ControlPlaneParts, kubectl: Kubectl, system: list[IConstruct]
    ) -> None:
        cluster = self._cluster
        karpenter = EksKarpenter(
            self,
            "Karpenter",
            cluster_name=plane.cluster_name,
            cluster_arn=plane.cluster_arn,
            key=self._key,
            mirror=cluster.environment.software.mirror,
        )
        if cluster.runs_scripts and cluster.by_karpenter:
            # the file that its nodes run is named in the stack of the cluster; the role that reads it is here
            by_group = script_configurations(cluster).by_group
            scripts = NodeScripts(
                self, "Scripts", configurations={name: by_group[name] for name in cluster.by_karpenter}
            )
            scripts.grant_read(karpenter.node_role)
        # its pods get their rights from the agent, and run on system nodes
        queue = karpenter.queue.queue_name
        karpenter.install(kubectl, karpenter_charts(cluster, settings, queue=queue), after=system)
        crossing(self, "KarpenterProfile", karpenter.instance_profile.instance_profile_name)
        CfnOutput(self, "KarpenterQueue", value=queue, description="News of interruptions")
