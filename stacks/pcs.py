"""AWS PCS, in the cluster stack."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.composition.service_logs import add_cluster_logs
from ultracluster.clusters.composition.sessions import add_sessions
from ultracluster.clusters.pcs.cluster import PcsCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_instance, login_command
from ultracluster.observability.log_groups import pcs_log_group


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
    environment = cluster.environment
    pcs = PcsCluster(
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
        node_tags={ENVIRONMENT_TAG: cluster.name, **environment.tags},
        metrics=observability.metrics if observability else None,
    )
    session = add_sessions(stack, cluster, nodes=pcs, key=key)
    add_cluster_logs(stack, cluster, source=pcs, key=key)
    _outputs(stack, cluster, pcs, session)


def _outputs(stack: Stack, cluster: Cluster, pcs: PcsCluster, session: SessionDocument) -> None:
    # without a login group, any node will do
    name = next(iter(cluster.with_role("login") or cluster.groups))
    tags = {"aws:pcs:compute-node-group-id": pcs.groups[name].attr_id}
    node = find_instance(tags, region=cluster.region)
    CfnOutput(
        stack,
        "LoginCommand",
        description=f"Opens a shell on the cluster ({DESCRIPTION})",
        value=login_command(node, region=cluster.region, document=session.name),
    )
    CfnOutput(stack, "ClusterName", value=pcs.cluster_name, description="PCS cluster")
    CfnOutput(stack, "ClusterId", value=pcs.cluster_id, description="PCS cluster")
    CfnOutput(stack, "ClusterArn", value=pcs.cluster_arn, description="PCS cluster")
    CfnOutput(
        stack,
        "LogGroup",
        value=pcs_log_group(cluster, pcs.cluster_id),
        description="Scaling and scheduler logs of PCS",
    )
    CfnOutput(
        stack,
        "NodeLogs",
        value="/var/log/provision/provisioning.log and /var/log/amazon/pcs/ on each node",
        description="Logs of the lifecycle scripts and of PCS's agent",
    )
