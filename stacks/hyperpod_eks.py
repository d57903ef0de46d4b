"""SageMaker HyperPod on EKS, in the cluster stack: HyperPod's nodes and what the service needs in Kubernetes.

It waits for the control plane, and not for system nodes, charts or file systems; what HyperPod's nodes run
for jobs (its add-ons, volumes) is in the stack of the workloads.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_hyperpod_node, hyperpod_target, login_command
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.parts import NetworkParts, StorageParts, crossing


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; nothing of it waits for a file system: pods mount, not nodes."""
    environment = cluster.environment
    hyperpod = HyperPodEksCluster(
        stack,
        "Cluster",
        resolved=cluster,
        control_plane=imported_control_plane(stack, cluster),
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[imports.nodes_group(stack, network)],
        key=key,
        scripts_bucket=imports.scripts_bucket(stack, storage, key),
        upload_role=imports.upload_role(stack, storage),
    )
    session = SessionDocument(stack, "Session", user=environment.session_user, access=environment.access)
    _outputs(stack, cluster, hyperpod, session)
    return []


def _outputs(stack: Stack, cluster: Cluster, hyperpod: HyperPodEksCluster, session: SessionDocument) -> None:
    region, name = cluster.region, cluster.environment.cluster_name
    group = next(iter(cluster.with_role("compute")))
    crossing(stack, "ClusterArn", hyperpod.cluster_arn)
    node = hyperpod_target(hyperpod.cluster_id, group, find_hyperpod_node(name, group, region=region))
    for output, description, value in (
        ("ClusterName", "HyperPod cluster", hyperpod.cluster_name),
        ("EksClusterName", "EKS cluster", name),
        (
            "KubeconfigCommand",
            "Lets kubectl speak to the cluster (as one of orchestrator.admins, where its API answers)",
            f"aws eks update-kubeconfig --region {region} --name {name}",
        ),
        (
            "ConnectCommand",
            f"Opens a shell on a node ({DESCRIPTION})",
            login_command(node, region=region, document=session.name),
        ),
        (
            "LogGroup",
            "Logs of lifecycle scripts and health checks",
            f"/aws/sagemaker/Clusters/{name}/{hyperpod.cluster_id}",
        ),
    ):
        CfnOutput(stack, output, value=value, description=description)
