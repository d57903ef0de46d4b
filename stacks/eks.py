"""Amazon EKS, in the cluster stack: the nodes that run jobs. If one fails, the control plane stays."""

from __future__ import annotations

from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.eks.workers import add_workers
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add node groups, or Karpenter's pools; nothing of it waits for a file system: pods mount, not nodes."""
    workers = add_workers(
        stack,
        cluster,
        configurations=script_configurations(cluster),
        plane=imported_control_plane(stack, cluster),
        subnet=existing_subnet(stack, "Nodes", network.subnet_id),
        security_groups=[imports.nodes_group(stack, network)],
        key=key,
        karpenter_profile=Fn.import_value(f"{cluster.environment.stack_name('system')}-KarpenterProfile"),
    )
    if not workers:
        CfnWaitConditionHandle(stack, "Nothing")  # CloudFormation refuses a stack without resources
    compute = cluster.with_role("compute")
    CfnOutput(stack, "NodeGroups", value=" ".join(compute) or "none", description="That run jobs")
    return []
