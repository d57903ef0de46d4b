"""AWS ParallelCluster with Slurm, in the cluster stack or deployed by its own command."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster
from ultracluster.clusters.parallelcluster.configuration_file import create_command
from ultracluster.clusters.parallelcluster.deployed_values import value_sources
from ultracluster.clusters.parallelcluster.ways_out import ways_out
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_instance, login_command
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, ParallelCluster)
    keys = storage.keys
    own = keys.secrets != keys.volumes  # its volumes are not encrypted with it
    parallelcluster = ParallelClusterCluster(
        stack,
        "Cluster",
        resolved=cluster,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[imports.nodes_group(stack, network)],
        key=kms.Key.from_key_arn(stack, "SecretsKey", keys.secrets) if own else key,
        scripts_bucket=imports.scripts_bucket(stack, storage, key),
        lustre=imports.lustre(stack, storage),
        open_zfs=imports.open_zfs(stack, storage),
        accounting=imports.accounting(stack, storage, key),
    )
    rules = ways_out(
        stack,
        orchestrator,
        security_group_id=network.security_group_id,
        vpc_cidr=network.vpc_cidr,
    )
    session = SessionDocument(stack, "Session", user=environment.session_user, access=environment.access)
    _outputs(stack, environment, parallelcluster, session)
    if parallelcluster.resource is None:
        return []
    parallelcluster.resource.node.add_dependency(*rules)
    return [parallelcluster.resource]


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
            value=f"ultracluster render parallelcluster {environment.name} -o {file} && "
            f"{create_command(environment, file)}",
        )
    for key, output in value_sources(environment).outputs.items():
        if output.stack == stack.stack_name:
            CfnOutput(
                stack,
                output.name,
                value=getattr(parallelcluster.values, key),
                description="For `ultracluster render parallelcluster`",
            )
