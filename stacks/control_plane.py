"""The stack of a Kubernetes control plane, and nothing that runs on a node.

It waits for key and network, so that it is made while the file systems are; a node, a chart or an add-on that
fails never rolls it back.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts
from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.config.environment import StackPart
from ultracluster.model import Cluster
from ultracluster.model.inference import inference_of
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.stacks.part import PartStack, cross, stack_name

SUFFIX: StackPart = "control-plane"


def imported_control_plane(stack: Stack, cluster: Cluster) -> IEksControlPlane:
    """The control plane, for stacks that are deployed after it: by the stable names of its exports."""
    assert cluster.kubernetes

    def read(output: str) -> str:
        return Fn.import_value(f"{stack_name(cluster, SUFFIX)}-{output}")

    return EksControlPlane.from_cluster_attributes(
        stack,
        "Kubectl",
        cluster_name=cluster.environment.cluster_name,
        cluster_arn=read("ClusterArn"),
        kubectl_handler_arn=read("KubectlHandlerArn"),
        kubernetes_version=cluster.kubernetes.kubernetes_version,
        cluster_endpoint=read("Endpoint"),
        cluster_certificate_authority_data=read("CertificateAuthority"),
        service_cidr=cluster.kubernetes.service_cidr,
        issuer_url=read("IssuerUrl") if inference_of(cluster) else None,
    )


class ControlPlaneStack(PartStack):
    """A Kubernetes control plane with the add-ons that every node needs, and who may use it."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        network: NetworkParts,
        key_arn: str,
    ) -> None:
        super().__init__(
            scope,
            cluster,
            "control-plane",
            env=env,
            holds="EKS control plane",
        )
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
            security_groups=network.security_groups(self),
            key=key_for(self, cluster.environment, "secrets", kms.Key.from_key_arn(self, "Key", key_arn)),
            logs=False,
        )
        cross(self, "ClusterArn", plane.cluster_arn)
        cross(self, "KubectlHandlerArn", plane.kubectl_handler_arn)
        cross(self, "Endpoint", plane.cluster_endpoint)
        cross(self, "CertificateAuthority", plane.cluster_certificate_authority_data)
        if inference_of(cluster) and plane.issuer_url:
            cross(self, "IssuerUrl", plane.issuer_url)
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
