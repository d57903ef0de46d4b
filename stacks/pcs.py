"""AWS PCS, in the cluster stack."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.pcs.cluster import PcsCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_instance, login_command
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    environment = cluster.environment
    pcs = PcsCluster(
        stack,
        "Cluster",
        resolved=cluster,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[imports.nodes_group(stack, network)],
        key=key,
        scripts_bucket=imports.scripts_bucket(stack, storage, key),
        lustre=imports.lustre(stack, storage),
        open_zfs=imports.open_zfs(stack, storage),
        node_tags={ENVIRONMENT_TAG: cluster.name, **environment.tags},
    )
    session = SessionDocument(stack, "Session", user=environment.session_user, access=environment.access)
    _outputs(stack, cluster, pcs, session)
    return list(pcs.groups.values())


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
        "NodeLogs",
        value="/var/log/provision/provisioning.log and /var/log/amazon/pcs/ on each node",
        description="Logs of the lifecycle scripts and of PCS's agent",
    )
