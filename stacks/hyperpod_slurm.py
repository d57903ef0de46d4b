"""SageMaker HyperPod with Slurm, in the cluster stack."""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.login import DESCRIPTION, find_hyperpod_node, hyperpod_target, login_command
from ultracluster.model.mounts import Accounting
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks.keys import scripts_bucket
from ultracluster.stacks.parts import NetworkParts, StorageParts, imported_upload_role


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, HyperPodSlurm)
    hyperpod = HyperPodSlurmCluster(
        stack,
        "Cluster",
        cluster_name=environment.cluster_name,
        config=orchestrator,
        node_groups=environment.node_groups,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[network.security_group_id],
        key=key,
        scripts_bucket=scripts_bucket(stack, storage.scripts_bucket, storage.keys, key),
        script_configurations=script_configurations(cluster),
        lustre=storage.lustre,
        open_zfs=storage.open_zfs,
        accounting=_with_secret_key(storage),
        mirror=environment.software.mirror,
        upload_role=imported_upload_role(stack, storage),
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


def _with_secret_key(storage: StorageParts) -> Accounting | None:
    accounting = storage.accounting
    if accounting and accounting.secret_key_arn is None:
        return replace(accounting, secret_key_arn=storage.keys.secrets)
    return accounting
