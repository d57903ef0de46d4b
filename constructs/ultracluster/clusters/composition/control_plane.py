"""A Kubernetes control plane, and nothing that runs on a node.

It waits for key and network, so that it is made while the file systems are; a node, a chart or an add-on that
fails never rolls it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.parts import Cross, NetworkParts, Output, Outputs, here
from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.kubectl import Kubectl, existing_kubectl
from ultracluster.clusters.eks.nodes import ClusterEntry
from ultracluster.model import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneParts:
    """What other parts must know of the control plane."""

    cluster_name: str
    cluster_arn: str
    handler_arn: str
    entry: ClusterEntry
    made: EksControlPlane | None = None

    def kubectl(self, scope: Construct, construct_id: str = "Kubectl") -> Kubectl:
        """Applies charts and manifests below `scope`."""
        made = here(scope, self.made)
        if made:
            return made.kubectl.below(scope)
        return existing_kubectl(
            scope, construct_id, cluster_name=self.cluster_name, handler_arn=self.handler_arn
        )


def control_plane_parts(cluster: Cluster, read: Callable[[str], str]) -> ControlPlaneParts:
    """The parts, for what is deployed after it; `read` imports an output of its stack by name."""
    assert cluster.kubernetes
    return ControlPlaneParts(
        cluster_name=cluster.cluster_name,
        cluster_arn=read("ClusterArn"),
        handler_arn=read("KubectlHandlerArn"),
        entry=ClusterEntry(
            name=cluster.cluster_name,
            endpoint=read("Endpoint"),
            certificate_authority=read("CertificateAuthority"),
            service_cidr=cluster.kubernetes.service_cidr,
        ),
    )


def add_control_plane(
    scope: Construct, cluster: Cluster, *, network: NetworkParts, key: kms.IKey, cross: Cross
) -> ControlPlaneParts:
    """Add the control plane with the add-ons that every node needs, and who may use it."""
    assert cluster.kubernetes
    plane = EksControlPlane(
        scope,
        "ControlPlane",
        cluster_name=cluster.cluster_name,
        config=cluster.kubernetes,
        vpc=network.vpc(scope),
        subnets=network.control_plane_subnets(scope),
        security_group=network.security_groups(scope)[0],
        key=key,
        logs=False,
    )
    return ControlPlaneParts(
        cluster_name=cluster.cluster_name,
        cluster_arn=cross(scope, "ClusterArn", plane.cluster_arn),
        handler_arn=cross(scope, "KubectlHandlerArn", plane.handler_arn),
        entry=ClusterEntry(
            name=cluster.cluster_name,
            endpoint=cross(scope, "Endpoint", plane.cluster.cluster_endpoint),
            certificate_authority=cross(
                scope, "CertificateAuthority", plane.cluster.cluster_certificate_authority_data
            ),
            service_cidr=cluster.kubernetes.service_cidr,
        ),
        made=plane,
    )


def control_plane_outputs(cluster: Cluster) -> Outputs:
    name = cluster.cluster_name
    return {
        "ClusterName": Output(value=name, description="EKS cluster"),
        "KubeconfigCommand": Output(
            value=f"aws eks update-kubeconfig --region {cluster.region} --name {name}",
            description="Lets kubectl speak to the cluster, as one of orchestrator.admins",
        ),
        "LogGroup": Output(value=f"/aws/eks/{name}/cluster", description="Control plane's logs"),
    }
