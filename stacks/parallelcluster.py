"""AWS ParallelCluster with Slurm, in the cluster stack or deployed by its own command."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.composition.sessions import add_sessions
from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster
from ultracluster.clusters.parallelcluster.ways_out import ways_out
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_instance, login_command
from ultracluster.parallelcluster.configuration_file import create_command
from ultracluster.parallelcluster.deployed_values import value_sources


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
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, ParallelCluster)
    parallelcluster = ParallelClusterCluster(
        stack,
        "Cluster",
        resolved=cluster,
        subnet=network.subnet(stack),
        further_subnets=network.further_subnets(stack),
        vpc_id=network.vpc_id,
        security_groups=network.security_groups(stack),
        key=key_for(stack, cluster.environment, "secrets", key),
        scripts_bucket=storage.buckets.scripts_bucket(
            stack, key_for(stack, cluster.environment, "buckets", key)
        ),
        lustre=storage.file_systems.lustre_in(stack),
        further_lustre=storage.file_systems.further_lustre_in(stack),
        open_zfs=storage.file_systems.open_zfs_in(stack),
        accounting=storage.file_systems.accounting_in(
            stack, key_for(stack, cluster.environment, "secrets", key)
        ),
        metrics=observability.metrics if observability else None,
    )
    rules = ways_out(
        stack,
        orchestrator,
        security_group_id=network.security_group_ids[0],
        vpc_cidrs=network.vpc_cidrs,
    )
    session = add_sessions(stack, cluster, nodes=parallelcluster, key=key)
    _outputs(stack, environment, parallelcluster, session)
    if parallelcluster.resource:
        parallelcluster.resource.node.add_dependency(*rules)


def _outputs(
    stack: Stack,
    environment: Environment,
    parallelcluster: ParallelClusterCluster,
    session: SessionDocument,
) -> None:
    name, region = environment.cluster_name, environment.region
    head = parallelcluster.head_node_instance_id
    tags = {"parallelcluster:cluster-name": name, "parallelcluster:node-type": "HeadNode"}
    node = head or find_instance(tags, region=region)
    file = f"{name}.pcluster.yaml"
    CfnOutput(stack, "ClusterName", value=name, description="ParallelCluster cluster")
    CfnOutput(
        stack,
        "LoginCommand",
        description=f"Opens a shell on the head node ({DESCRIPTION})",
        value=login_command(node, region=region, document=session.name),
    )
    if head:
        CfnOutput(stack, "HeadNodeInstanceId", value=head, description="EC2 instance of the head node")
    else:
        CfnOutput(
            stack,
            "CreateClusterCommand",
            description="Makes the cluster, in a shell with the pcluster command of the same release",
            value=f"ultracluster export parallelcluster {environment.name} -o {file} && "
            f"{create_command(environment, file)}",
        )
    for key, output in value_sources(environment).outputs.items():
        if output.stack == stack.stack_name:
            CfnOutput(
                stack,
                output.name,
                value=getattr(parallelcluster.values, key),
                description="For `ultracluster export parallelcluster`",
            )
