"""The stack of a Kubernetes control plane, and nothing that runs on a node.

It waits for key and network, so that it is made while the file systems are; a node, a chart or an add-on that
fails never rolls it back.
"""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.kubectl import Kubectl, existing_kubectl
from ultracluster.clusters.eks.nodes import ClusterEntry
from ultracluster.config.environment import StackPart
from ultracluster.model import Cluster
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.stacks.parts import NetworkParts, crossing

SUFFIX: StackPart = "control-plane"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneParts:
    """What other stacks must know of the control plane."""

    cluster_name: str
    cluster_arn: str
    handler_arn: str
    entry: ClusterEntry

    def kubectl(self, scope: Construct, construct_id: str = "Kubectl") -> Kubectl:
        """Applies charts and manifests from another stack."""
        return existing_kubectl(
            scope, construct_id, cluster_name=self.cluster_name, handler_arn=self.handler_arn
        )


def control_plane_parts(cluster: Cluster) -> ControlPlaneParts:
    """The parts, for stacks that are deployed after it: by the stable names of its exports."""
    assert cluster.kubernetes
    name = cluster.environment.cluster_name

    def read(output: str) -> str:
        return Fn.import_value(f"{cluster.environment.stack_name(SUFFIX)}-{output}")

    return ControlPlaneParts(
        cluster_name=name,
        cluster_arn=read("ClusterArn"),
        handler_arn=read("KubectlHandlerArn"),
        entry=ClusterEntry(
            name=name,
            endpoint=read("Endpoint"),
            certificate_authority=read("CertificateAuthority"),
            service_cidr=cluster.kubernetes.service_cidr,
        ),
    )


class ControlPlaneStack(Stack):
    """A Kubernetes control plane with the add-ons that every node needs, and who may use it."""

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
            description=f"Ultracluster {cluster.name}: EKS control plane",
        )  # fmt: skip
        assert cluster.kubernetes
        name = cluster.environment.cluster_name
        plane = EksControlPlane(
            self,
            "ControlPlane",
            cluster_name=name,
            config=cluster.kubernetes,
            vpc=existing_vpc(self, "Vpc", network.vpc_id, cidr=network.vpc_cidr),
            subnets=[
                existing_subnet(self, f"ControlPlaneSubnet{number}", subnet_id)
                for number, subnet_id in enumerate(network.control_plane_subnet_ids, start=1)
            ],
            security_group=ec2.SecurityGroup.from_security_group_id(
                self, "NodeSecurityGroup", network.security_group_id, mutable=False
            ),
            key=kms.Key.from_key_arn(self, "Key", key_arn),
            logs=False,
        )
        crossing(self, "ClusterArn", plane.cluster_arn)
        crossing(self, "KubectlHandlerArn", plane.handler_arn)
        crossing(self, "Endpoint", plane.cluster.cluster_endpoint)
        crossing(self, "CertificateAuthority", plane.cluster.cluster_certificate_authority_data)
        CfnOutput(self, "ClusterName", value=name, description="EKS cluster")
        CfnOutput(
            self,
            "KubeconfigCommand",
            description="Lets kubectl speak to the cluster, as one of orchestrator.admins",
            value=f"aws eks update-kubeconfig --region {cluster.region} --name {name}",
        )
        CfnOutput(
            self,
            "LogGroup",
            value=f"/aws/eks/{name}/cluster",
            description="Control plane's logs",
        )
