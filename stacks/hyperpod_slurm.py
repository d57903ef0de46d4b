"""SageMaker HyperPod with Slurm, in the cluster stack."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.composition.service_logs import add_cluster_logs
from ultracluster.clusters.composition.sessions import add_sessions
from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_hyperpod_node, hyperpod_target, login_command


def add_cluster(
    stack: Stack,
    cluster: Cluster,
    *,
    network: NetworkParts,
    storage: StorageParts,
    key: kms.IKey,
    observability: ObservabilityParts | None = None,
) -> None:
    """Add the cluster and its outputs."""
    hyperpod = HyperPodSlurmCluster(
        stack,
        "Cluster",
        resolved=cluster,
        subnet=network.subnet(stack),
        further_subnets=network.further_subnets(stack),
        security_groups=network.security_groups(stack),
        key=key_for(stack, cluster.environment, "volumes", key),
        scripts_bucket=storage.buckets.scripts_bucket(
            stack, key_for(stack, cluster.environment, "buckets", key)
        ),
        lustre=storage.file_systems.lustre_in(stack),
        further_lustre=storage.file_systems.further_lustre_in(stack),
        open_zfs=storage.file_systems.open_zfs_in(stack),
        accounting=storage.file_systems.accounting_in(
            stack, key_for(stack, cluster.environment, "secrets", key)
        ),
        upload_role=storage.buckets.upload_role(stack),
        metrics=observability.metrics if observability else None,
    )
    session = add_sessions(stack, cluster, nodes=hyperpod, key=key)
    add_cluster_logs(stack, cluster, source=hyperpod, key=key)
    _outputs(stack, cluster, hyperpod, session)


def _outputs(
    stack: Stack, cluster: Cluster, hyperpod: HyperPodSlurmCluster, session: SessionDocument
) -> None:
    region, name = cluster.region, hyperpod.cluster_name
    group = next(iter(cluster.with_role("login") or cluster.with_role("controller")))
    node = hyperpod_target(hyperpod.cluster_id, group, find_hyperpod_node(name, group, region=region))
    CfnOutput(
        stack,
        "LoginCommand",
        description=f"Opens a shell on the cluster ({DESCRIPTION})",
        value=login_command(node, region=region, document=session.name),
    )
    CfnOutput(stack, "ClusterName", value=hyperpod.cluster_name, description="HyperPod cluster")
    CfnOutput(stack, "ClusterArn", value=hyperpod.cluster_arn, description="HyperPod cluster")
    CfnOutput(
        stack,
        "LogGroup",
        value=f"/aws/sagemaker/Clusters/{hyperpod.cluster_name}/{hyperpod.cluster_id}",
        description="Logs of lifecycle scripts and health checks",
    )
