"""The stack of a Kubernetes cluster's system nodes and of what runs on them.

Add-ons, device plugins, schedulers and their queues, Karpenter. It waits for the control plane and the ways
out and is made beside the accelerated nodes, which need none of it to join.
"""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from stacks.control_plane import ControlPlaneParts, control_plane_parts
from stacks.parts import NetworkParts, crossing
from ultracluster.clusters.eks.addons import EksAddons
from ultracluster.clusters.eks.karpenter import EksKarpenter
from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.clusters.hyperpod.addons import cert_manager
from ultracluster.clusters.job_scheduling import JobScheduling
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.charts import device_charts, job_charts
from ultracluster.kubernetes.karpenter import karpenter_charts, karpenter_groups
from ultracluster.kubernetes.mpi_operator import mpi_operator
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import block_storage_class
from ultracluster.kubernetes.system_tolerations import system_tolerations
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.types import known_type_of
from ultracluster.network.existing import existing_subnet
from ultracluster.software.node_image import full_image_release

SUFFIX = "system"


class SystemStack(Stack):
    """System nodes that EKS manages, and everything that is installed into the cluster for all users."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        network: NetworkParts,
        key_arn: str,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: system nodes, add-ons, charts",
        )  # fmt: skip
        orchestrator = config.orchestrator
        assert isinstance(orchestrator, Eks | HyperPodEks)
        self._config = config
        self._key = kms.Key.from_key_arn(self, "Key", key_arn)
        plane = control_plane_parts(config)
        kubectl = plane.kubectl(self)
        system = self._groups(orchestrator, plane, network)
        EksAddons(
            self,
            "Addons",
            cluster_name=plane.cluster_name,
            kubernetes_version=orchestrator.kubernetes_version,
            key=self._key,
            file_systems=config.storage.lustre is not None,
            after=system,
            tolerations=system_tolerations(config),
        )
        if isinstance(orchestrator, HyperPodEks) and (
            orchestrator.training_operator or orchestrator.inference
        ):
            cert_manager(
                self,
                config=orchestrator,
                cluster_name=plane.cluster_name,
                after=system,
                tolerations=system_tolerations(config),
            )
        self._install(orchestrator, plane, kubectl, system)

    def _groups(
        self, orchestrator: Eks | HyperPodEks, plane: ControlPlaneParts, network: NetworkParts
    ) -> list[IConstruct]:
        config = self._config
        groups = config.groups("system")
        if not groups:
            return []
        role = node_role(self, "NodeRole", cluster_arn=plane.cluster_arn, mirror=config.software.mirror)
        subnet = existing_subnet(self, "Nodes", network.subnet_id)
        security_group = ec2.SecurityGroup.from_security_group_id(
            self, "NodeSecurityGroup", network.security_group_id, mutable=False
        )
        return [
            EksNodeGroup(
                self,
                f"Group-{name}",
                name=name,
                group=group,
                instance_type=known_type_of(config, group),
                cluster=plane.entry,
                image_release=full_image_release(config, name),
                # the CDK's class and interface differ in names of arguments
                role=cast("iam.IRole", role),
                subnet=subnet,
                security_groups=[security_group],
                key=self._key,
                after=[role],
                repair=orchestrator.node_repair if isinstance(orchestrator, Eks) else None,
                max_unavailable=orchestrator.max_unavailable if isinstance(orchestrator, Eks) else 1,
            ).resource
            for name, group in groups.items()
        ]

    def _install(
        self,
        orchestrator: Eks | HyperPodEks,
        plane: ControlPlaneParts,
        kubectl: Kubectl,
        system: list[IConstruct],
    ) -> None:
        config = self._config
        for chart in (*device_charts(config), *job_charts(config)):
            kubectl.add_chart(f"Chart-{chart.name}", chart)
        if orchestrator.mpi_operator:
            operator = mpi_operator(
                image=orchestrator.mpi_operator_image, tolerations=system_tolerations(config)
            )
            kubectl.add_manifest("MpiOperator", *operator)
        kubectl.add_manifest("BlockStorage", block_storage_class(key_arn=self._key.key_arn))
        JobScheduling(
            self,
            "Scheduling",
            kubectl=kubectl,
            cluster_name=plane.cluster_name,
            scheduling=scheduling(config),
            after=system,
        )
        if isinstance(orchestrator, Eks) and orchestrator.karpenter:
            self._karpenter(plane, kubectl, system)

    def _karpenter(self, plane: ControlPlaneParts, kubectl: Kubectl, system: list[IConstruct]) -> None:
        config = self._config
        made = EksKarpenter(
            self,
            "Karpenter",
            cluster_name=plane.cluster_name,
            cluster_arn=plane.cluster_arn,
            key=self._key,
            mirror=config.software.mirror,
        )
        assert isinstance(config.orchestrator, Eks)
        if config.orchestrator.lifecycle != "none" and karpenter_groups(config):
            # the file that its nodes run is named in the stack of the cluster; the role that reads it is here
            by_group = script_configurations(resolve(config)).by_group
            scripts = NodeScripts(
                self, "Scripts", configurations={name: by_group[name] for name in karpenter_groups(config)}
            )
            scripts.grant_read(made.node_role)
        # its pods get their rights from the agent, and run on system nodes
        made.install(kubectl, karpenter_charts(config, queue=made.queue.queue_name), after=system)
        crossing(self, "KarpenterProfile", made.instance_profile.instance_profile_name)
        CfnOutput(self, "KarpenterQueue", value=made.queue.queue_name, description="News of interruptions")
