"""Amazon EKS, in the cluster stack: the nodes that run jobs. If one fails, the control plane stays."""

from __future__ import annotations

from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from aws_cdk import aws_kms as kms

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.eks.workers import add_workers
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.part import stack_name


def add_cluster(
    stack: Stack,
    cluster: Cluster,
    *,
    network: NetworkParts,
    storage: StorageParts,
    key: kms.IKey,
    observability: ObservabilityParts | None = None,
) -> None:
    """Add node groups, or Karpenter's pools; nothing of it waits for a file system: pods mount, not nodes."""
    workers = add_workers(
        stack,
        cluster,
        configurations=script_configurations(cluster),
        plane=imported_control_plane(stack, cluster),
        subnet=network.subnet(stack),
        security_groups=network.security_groups(stack),
        key=key_for(stack, cluster.environment, "volumes", key),
        karpenter_profile=Fn.import_value(f"{stack_name(cluster, 'system')}-KarpenterProfile"),
    )
    if not workers:
        CfnWaitConditionHandle(stack, "Nothing")  # CloudFormation refuses a stack without resources
    compute = cluster.with_role("compute")
    CfnOutput(stack, "NodeGroups", value=" ".join(compute) or "none", description="That run jobs")
