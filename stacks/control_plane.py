"""The stack of an EKS control plane and the nodes that EKS manages.

It waits for the network and for nothing else, so that it is made beside the file system. What needs both is
in the stack of the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import aws_cdk as cdk
from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from stacks.parts import NetworkParts, crossing
from ultracluster.catalog import InstanceType
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.lifecycle.configuration import script_configurations
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.orchestrators.eks_control_plane import EksControlPlane
from ultracluster.orchestrators.eks_karpenter import FLEET, SPOT, EksKarpenter
from ultracluster.orchestrators.eks_kubectl import Kubectl, existing_kubectl
from ultracluster.orchestrators.eks_nodes import ClusterEntry, EksNodeGroup
from ultracluster.orchestrators.eks_roles import node_role
from ultracluster.orchestrators.eks_scripts import NodeScripts
from ultracluster.orchestrators.job_scheduling import JobScheduling
from ultracluster.rendering.charts import device_charts, job_charts
from ultracluster.rendering.karpenter import karpenter_charts, karpenter_groups
from ultracluster.rendering.kubernetes_scheduling import scheduling
from ultracluster.rendering.mpi_operator import mpi_operator
from ultracluster.rules.types import instance_type_of
from ultracluster.security.cluster_key import AUTO_SCALING, ClusterKey

SUFFIX = "control-plane"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneParts:
    """What other stacks must know of the control plane."""

    cluster_name: str
    cluster_arn: str
    handler_arn: str

    def kubectl(self, scope: Construct, construct_id: str = "Kubectl") -> Kubectl:
        """Applies charts and manifests from another stack."""
        return existing_kubectl(
            scope, construct_id, cluster_name=self.cluster_name, handler_arn=self.handler_arn
        )


def control_plane_parts(config: Environment) -> ControlPlaneParts:
    """The parts, for stacks that are deployed after it: by the stable names of its exports."""

    def read(name: str) -> str:
        return Fn.import_value(f"{config.name}-{SUFFIX}-{name}")

    return ControlPlaneParts(
        cluster_name=config.cluster_name,
        cluster_arn=read("ClusterArn"),
        handler_arn=read("KubectlHandlerArn"),
    )


class ControlPlaneStack(Stack):
    """A Kubernetes control plane, its add-ons and device plugins, and managed node groups."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        network: NetworkParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: EKS control plane and managed nodes",
        )  # fmt: skip
        assert isinstance(config.orchestrator, Eks | HyperPodEks)
        self._config = config
        self._network = network
        self._key = self._make_key()
        self._nodes = ec2.SecurityGroup.from_security_group_id(
            self, "NodeSecurityGroup", network.security_group_id, mutable=False
        )
        self.control_plane = EksControlPlane(
            self,
            "ControlPlane",
            cluster_name=config.cluster_name,
            config=config.orchestrator,
            vpc=existing_vpc(self, "Vpc", network.vpc_id, cidr=network.vpc_cidr),
            subnets=[
                existing_subnet(self, f"ControlPlaneSubnet{number}", subnet_id)
                for number, subnet_id in enumerate(network.control_plane_subnet_ids, start=1)
            ],
            security_group=self._nodes,
            key=self._key,
            protect=config.protect,
        )
        self._subnet = existing_subnet(self, "Nodes", network.subnet_id)
        self._scripts = self._make_scripts(config.orchestrator)
        groups = self._groups(config.orchestrator)
        system: list[IConstruct] = [
            groups[name].resource for name in config.groups("system") if name in groups
        ]
        self.control_plane.add_workload_addons(file_systems=config.storage.lustre is not None, after=system)
        for chart in (*device_charts(config), *job_charts(config)):
            self.control_plane.add_chart(f"Chart-{chart.name}", chart)
        if config.orchestrator.mpi_operator:
            operator = mpi_operator(image=config.orchestrator.mpi_operator_image)
            self.control_plane.add_manifest("MpiOperator", *operator)
        JobScheduling(
            self,
            "Scheduling",
            kubectl=self.control_plane,
            cluster_name=self.control_plane.cluster.cluster_name,
            scheduling=scheduling(config),
            after=system,
        )
        if isinstance(config.orchestrator, Eks) and config.orchestrator.karpenter:
            self._karpenter(config.orchestrator, system)
        self._outputs()

    def _make_key(self) -> kms.IKey:
        if self._config.storage.key:
            return kms.Key.from_key_arn(self, "Key", self._config.storage.key.arn)
        # a key of its own: that of the file systems is made beside it
        launched_by = (AUTO_SCALING, SPOT, FLEET) if karpenter_groups(self._config) else (AUTO_SCALING,)
        return ClusterKey(self, "Key", launched_by=launched_by).key

    def _make_scripts(self, orchestrator: Eks | HyperPodEks) -> NodeScripts | None:
        if orchestrator.kind != "eks" or orchestrator.lifecycle == "none":
            return None
        by_group = script_configurations(self._config).by_group
        wanted = {name: by_group[name] for name in self._config.groups("compute")}
        return NodeScripts(self, "Scripts", configurations=wanted)

    def _groups(self, orchestrator: Eks | HyperPodEks) -> dict[str, EksNodeGroup]:
        """Those that EKS manages: all of them, or with HyperPod the system groups alone."""
        config = self._config
        wanted = {
            name: group
            for name, group in config.node_groups.items()
            if (orchestrator.kind == "eks" or group.role == "system") and name not in karpenter_groups(config)
        }
        role = node_role(
            self, "NodeRole", cluster_arn=self.control_plane.cluster_arn, mirror=config.software.mirror
        )
        nodes_role = cast("iam.IRole", role)  # the CDK's class and interface differ in names of arguments
        if self._scripts:
            self._scripts.grant_read(role)
        cluster = self.control_plane.cluster
        entry = ClusterEntry(
            name=cluster.cluster_name,
            endpoint=cluster.cluster_endpoint,
            certificate_authority=cluster.cluster_certificate_authority_data,
            service_cidr=orchestrator.service_cidr,
        )
        made: dict[str, EksNodeGroup] = {}
        for name, group in wanted.items():
            made[name] = EksNodeGroup(
                self,
                f"Group-{name}",
                name=name,
                group=group,
                instance_type=_type(config, group),
                cluster=entry,
                kubernetes_version=orchestrator.kubernetes_version,
                role=nodes_role,
                subnet=self._subnet,
                security_groups=[self._nodes],
                key=self._key,
                after=[*self.control_plane.before_nodes, role],
                scripts=self._scripts,
                repair=orchestrator.node_repair if orchestrator.kind == "eks" else None,
                max_unavailable=orchestrator.max_unavailable if orchestrator.kind == "eks" else 1,
            )
        return made

    def _karpenter(self, orchestrator: Eks, system: list[IConstruct]) -> None:
        assert orchestrator.karpenter
        config, plane = self._config, self.control_plane
        made = EksKarpenter(
            self,
            "Karpenter",
            cluster_name=plane.cluster_name,
            cluster_arn=plane.cluster_arn,
            key=self._key,
            mirror=config.software.mirror,
        )
        made.after(cast("IConstruct", plane.cluster))
        if self._scripts:
            self._scripts.grant_read(made.node_role)
        # its pods get their rights from the agent, and run on system nodes
        charts = karpenter_charts(config, queue=made.queue.queue_name)
        made.install(plane.kubectl, charts, after=[*plane.before_nodes, *system])
        for name, group in karpenter_groups(config).items():
            made.add_group(
                plane.kubectl,
                name,
                group,
                _type(config, group),
                kubernetes_version=orchestrator.kubernetes_version,
                subnet=self._subnet,
                security_groups=[self._nodes],
                idle_minutes=orchestrator.karpenter.idle_minutes,
                scripts=self._scripts,
                tags=config.tags,
            )

    def _outputs(self) -> None:
        config, plane = self._config, self.control_plane
        crossing(self, "ClusterArn", plane.cluster_arn)
        crossing(self, "KubectlHandlerArn", plane.handler_arn)
        CfnOutput(self, "ClusterName", value=config.cluster_name, description="EKS cluster")
        CfnOutput(
            self,
            "KubeconfigCommand",
            description="Lets kubectl speak to the cluster, as one of orchestrator.admins",
            value=f"aws eks update-kubeconfig --region {config.region} --name {config.cluster_name}",
        )
        CfnOutput(
            self,
            "LogGroup",
            value=f"/aws/eks/{config.cluster_name}/cluster",
            description="Control plane's logs",
        )


def _type(config: Environment, group: NodeGroup) -> InstanceType:
    known = instance_type_of(config, group)
    assert known, f"{group.instance_type}: the rules let no unknown type pass"
    return known
