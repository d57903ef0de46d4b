"""AWS PCS, in the cluster stack."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from stacks.parts import NetworkParts, StorageParts
from ultracluster.clusters.pcs.cluster import PcsCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.orchestrator import Pcs
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.types import made_from
from ultracluster.network.existing import existing_subnet


def add_cluster(
    stack: Stack, config: Environment, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    assert isinstance(config.orchestrator, Pcs)
    cluster = PcsCluster(
        stack,
        "Cluster",
        cluster_name=config.cluster_name,
        config=config.orchestrator,
        node_groups=config.node_groups,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[
            ec2.SecurityGroup.from_security_group_id(
                stack, "NodeSecurityGroup", network.security_group_id, mutable=False
            )
        ],
        key=key,
        instance_types={name: made_from(name, declared) for name, declared in config.instance_types.items()},
        scripts_bucket=s3.Bucket.from_bucket_attributes(
            stack, "ScriptsBucket", bucket_name=storage.scripts_bucket, encryption_key=key
        ),
        script_configurations=script_configurations(resolve(config)),
        lustre=storage.lustre,
        open_zfs=storage.open_zfs,
        mirror=config.software.mirror,
        node_tags={"ultracluster:environment": config.name, **config.tags},
    )
    session = SessionDocument(stack, "Session", user=config.session_user, access=config.access)
    _outputs(stack, config, cluster, session)
    return list(cluster.groups.values())


def _outputs(stack: Stack, config: Environment, cluster: PcsCluster, session: SessionDocument) -> None:
    # without a login group, any node will do
    name = next(iter(config.groups("login") or config.node_groups))
    group = cluster.groups[name].attr_id
    find = (
        f"aws ec2 describe-instances --region {config.region} "
        f"--filters Name=tag:aws:pcs:compute-node-group-id,Values={group} "
        "Name=instance-state-name,Values=running "
        "--query 'Reservations[0].Instances[0].InstanceId' --output text"
    )
    start = f"aws ssm start-session --region {config.region} --document-name {session.name}"
    CfnOutput(
        stack,
        "LoginCommand",
        description="Opens a shell on the cluster (needs the AWS CLI with its Session Manager plugin)",
        value=f"{start} --target $({find})",
    )
    CfnOutput(stack, "ClusterName", value=cluster.cluster_name, description="PCS cluster")
    CfnOutput(stack, "ClusterId", value=cluster.cluster_id, description="PCS cluster")
    CfnOutput(stack, "ClusterArn", value=cluster.cluster_arn, description="PCS cluster")
    CfnOutput(
        stack,
        "NodeLogs",
        value="/var/log/provision/provisioning.log and /var/log/amazon/pcs/ on each node",
        description="Logs of the lifecycle scripts and of PCS's agent",
    )
