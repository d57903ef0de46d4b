"""SageMaker HyperPod with Slurm, in the cluster stack."""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from stacks.parts import NetworkParts, StorageParts, imported_upload_role
from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
from ultracluster.clusters.parts import Accounting
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet


def add_cluster(
    stack: Stack, config: Environment, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
    assert isinstance(config.orchestrator, HyperPodSlurm)
    cluster = HyperPodSlurmCluster(
        stack,
        "Cluster",
        cluster_name=config.cluster_name,
        config=config.orchestrator,
        node_groups=config.node_groups,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[network.security_group_id],
        key=key,
        scripts_bucket=s3.Bucket.from_bucket_attributes(
            stack, "ScriptsBucket", bucket_name=storage.scripts_bucket, encryption_key=key
        ),
        script_configurations=script_configurations(resolve(config)),
        lustre=storage.lustre,
        open_zfs=storage.open_zfs,
        accounting=_with_secret_key(storage),
        mirror=config.software.mirror,
        upload_role=imported_upload_role(stack, storage),
    )
    session = SessionDocument(stack, "Session", user=config.session_user, access=config.access)
    _outputs(stack, config, cluster, session)
    return [cluster.resource]


def _outputs(
    stack: Stack, config: Environment, cluster: HyperPodSlurmCluster, session: SessionDocument
) -> None:
    group = next(iter(config.groups("login") or config.groups("controller")))
    first = "--query 'ClusterNodeSummaries[0].InstanceId' --output text"
    find = (
        f"aws sagemaker list-cluster-nodes --region {config.region} --cluster-name {config.cluster_name} "
        f"--instance-group-name-contains {group} {first}"
    )
    start = f"aws ssm start-session --region {config.region} --document-name {session.name}"
    target = f"sagemaker-cluster:{cluster.cluster_id}_{group}-$({find})"
    CfnOutput(
        stack,
        "LoginCommand",
        description="Opens a shell on the cluster (needs the AWS CLI with its Session Manager plugin)",
        value=f"{start} --target {target}",
    )
    CfnOutput(stack, "ClusterName", value=cluster.cluster_name, description="HyperPod cluster")
    CfnOutput(stack, "ClusterArn", value=cluster.cluster_arn, description="HyperPod cluster")
    CfnOutput(
        stack,
        "LogGroup",
        value=f"/aws/sagemaker/Clusters/{cluster.cluster_name}/{cluster.cluster_id}",
        description="Logs of lifecycle scripts and health checks",
    )


def _with_secret_key(storage: StorageParts) -> Accounting | None:
    accounting = storage.accounting
    if accounting and accounting.secret_key_arn is None:
        return replace(accounting, secret_key_arn=storage.key_arn)
    return accounting
