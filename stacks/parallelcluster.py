"""AWS ParallelCluster with Slurm, in the cluster stack or deployed by its own command."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster
from ultracluster.clusters.parallelcluster.configuration_file import create_command
from ultracluster.clusters.parallelcluster.deployed_values import value_sources
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import Cluster
from ultracluster.model.login import DESCRIPTION, find_instance, login_command
from ultracluster.stacks.keys import scripts_bucket
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, ParallelCluster)
    keys = storage.keys
    parallelcluster = ParallelClusterCluster(
        stack,
        "Cluster",
        environment=environment,
        subnet_id=network.subnet_id,
        security_group_id=network.security_group_id,
        key=kms.Key.from_key_arn(stack, "SecretsKey", keys.secrets) if keys.secrets != keys.volumes else key,
        scripts_bucket=scripts_bucket(stack, storage.scripts_bucket, storage.keys, key),
        lustre=storage.lustre,
        open_zfs=storage.open_zfs,
        accounting=storage.accounting,
    )
    ways_out = _ways_out(stack, orchestrator, network)
    session = SessionDocument(stack, "Session", user=environment.session_user, access=environment.access)
    _outputs(stack, environment, parallelcluster, session)
    if parallelcluster.resource is None:
        return []
    parallelcluster.resource.node.add_dependency(*ways_out)
    return [parallelcluster.resource]


def _ways_out(
    stack: Stack, orchestrator: ParallelCluster, network: NetworkParts
) -> list[ec2.CfnSecurityGroupEgress]:
    """What the nodes' group does not let out by itself; ParallelCluster adds nothing to a group of ours."""
    rules: list[tuple[str, str, int, str]] = []
    if orchestrator.head_storage == "efs":
        rules.append(("HeadStorage", network.vpc_cidr, 2049, "EFS that ParallelCluster makes"))
    directory = orchestrator.directory_service
    for number, cidr in enumerate(directory.server_networks if directory else ()):
        rules += [(f"Directory{number}P{port}", cidr, port, "Directory") for port in (389, 636)]
    return [
        ec2.CfnSecurityGroupEgress(
            stack,
            name,
            group_id=network.security_group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            cidr_ip=cidr,
            description=description,
        )
        for name, cidr, port, description in rules
    ]


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
