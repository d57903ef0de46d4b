"""SageMaker HyperPod with Slurm, in the cluster stack."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_hyperpod_node, hyperpod_target, login_command
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    environment = cluster.environment
    hyperpod = HyperPodSlurmCluster(
        stack,
        "Cluster",
        resolved=cluster,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[imports.nodes_group(stack, network)],
        key=key,
        scripts_bucket=imports.scripts_bucket(stack, storage, key),
        lustre=imports.lustre(stack, storage),
        open_zfs=imports.open_zfs(stack, storage),
        accounting=imports.accounting(stack, storage, key),
        upload_role=imports.upload_role(stack, storage),
    )
    session = SessionDocument(stack, "Session", user=environment.session_user, access=environment.access)
    _outputs(stack, cluster, hyperpod, session)
    return [hyperpod.resource]


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
