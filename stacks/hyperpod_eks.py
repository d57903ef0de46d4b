"""SageMaker HyperPod on EKS, in the cluster stack: HyperPod's nodes and what the service needs in Kubernetes.

It waits for the control plane, and not for system nodes, charts or file systems; what HyperPod's nodes run
for jobs (its add-ons, volumes) is in the stack of the workloads.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from stacks.control_plane import control_plane_parts
from stacks.parts import NetworkParts, StorageParts, crossing, imported_upload_role
from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster
from ultracluster.clusters.session_document import SessionDocument
from ultracluster.config import Environment
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.types import every_type_of
from ultracluster.network.existing import existing_subnet


def add_cluster(
    stack: Stack, config: Environment, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add the cluster and its outputs; nothing of it waits for a file system: pods mount, not nodes."""
    orchestrator = config.orchestrator
    assert isinstance(orchestrator, HyperPodEks)
    parts = control_plane_parts(config)
    kubectl = parts.kubectl(stack)
    groups = config.groups("compute")
    types = {
        known.name: known for group in groups.values() for known in every_type_of(config, group) if known
    }
    cluster = HyperPodEksCluster(
        stack,
        "Cluster",
        cluster_name=config.cluster_name,
        config=orchestrator,
        node_groups=groups,
        instance_types=types,
        eks_cluster_arn=parts.cluster_arn,
        kubectl=kubectl,
        region=config.region,
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[network.security_group_id],
        key=key,
        scripts_bucket=s3.Bucket.from_bucket_attributes(
            stack, "ScriptsBucket", bucket_name=storage.scripts_bucket, encryption_key=key
        ),
        script_configurations=script_configurations(resolve(config)),
        mirror=config.software.mirror,
        upload_role=imported_upload_role(stack, storage),
    )
    session = SessionDocument(stack, "Session", user=config.session_user, access=config.access)
    _outputs(stack, config, cluster, session)
    return []


def _outputs(
    stack: Stack, config: Environment, cluster: HyperPodEksCluster, session: SessionDocument
) -> None:
    region, name = config.region, config.cluster_name
    group = next(iter(config.groups("compute")))
    crossing(stack, "ClusterArn", cluster.cluster_arn)
    find = (
        f"aws sagemaker list-cluster-nodes --region {region} --cluster-name {name} "
        f"--instance-group-name-contains {group} --query 'ClusterNodeSummaries[0].InstanceId' --output text"
    )
    start = f"aws ssm start-session --region {region} --document-name {session.name}"
    for output, description, value in (
        ("ClusterName", "HyperPod cluster", cluster.cluster_name),
        ("EksClusterName", "EKS cluster", name),
        (
            "KubeconfigCommand",
            "Lets kubectl speak to the cluster (as one of orchestrator.admins, where its API answers)",
            f"aws eks update-kubeconfig --region {region} --name {name}",
        ),
        (
            "ConnectCommand",
            "Opens a shell on a node (needs the AWS CLI with its Session Manager plugin)",
            f"{start} --target sagemaker-cluster:{cluster.cluster_id}_{group}-$({find})",
        ),
        (
            "LogGroup",
            "Logs of lifecycle scripts and health checks",
            f"/aws/sagemaker/Clusters/{name}/{cluster.cluster_id}",
        ),
    ):
        CfnOutput(stack, output, value=value, description=description)
