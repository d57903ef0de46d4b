"""SageMaker HyperPod on EKS, in the cluster stack: HyperPod's nodes and what the service needs in Kubernetes.

It waits for the control plane, and not for system nodes, charts or file systems; what HyperPod's nodes run
for jobs (its add-ons, volumes) is in the stack of the workloads.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.composition.service_logs import add_cluster_logs
from ultracluster.clusters.composition.sessions import add_sessions
from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_hyperpod_node, hyperpod_target, login_command
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.part import cross


def add_cluster(
    stack: Stack,
    cluster: Cluster,
    *,
    network: NetworkParts,
    storage: StorageParts,
    key: kms.IKey,
    observability: ObservabilityParts | None = None,
) -> None:
    """Add the cluster and its outputs; nothing of it waits for a file system: pods mount, not nodes."""
    hyperpod = HyperPodEksCluster(
        stack,
        "Cluster",
        resolved=cluster,
        control_plane=imported_control_plane(stack, cluster),
        subnet=network.subnet(stack),
        further_subnets=network.further_subnets(stack),
        security_groups=network.security_groups(stack),
        key=key_for(stack, cluster.environment, "volumes", key),
        scripts_bucket=storage.buckets.scripts_bucket(
            stack, key_for(stack, cluster.environment, "buckets", key)
        ),
        upload_role=storage.buckets.upload_role(stack),
    )
    session = add_sessions(stack, cluster, nodes=hyperpod, key=key)
    add_cluster_logs(stack, cluster, source=hyperpod, key=key)
    _outputs(stack, cluster, hyperpod, session)


def _outputs(stack: Stack, cluster: Cluster, hyperpod: HyperPodEksCluster, session: SessionDocument) -> None:
    region, name = cluster.region, cluster.environment.cluster_name
    group = next(iter(cluster.with_role("compute")))
    cross(stack, "ClusterArn", hyperpod.cluster_arn)
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
