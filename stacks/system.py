"""The stack of a Kubernetes cluster's system nodes and of what runs on them.

Add-ons, device plugins, schedulers and their queues, Karpenter. It waits for the control plane and the ways
out and is made while the accelerated nodes are, which need none of it to join.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts
from ultracluster.clusters.eks.system import add_system
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.observability import collects, observability_of
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.part import PartStack, cross

SUFFIX = "system"


class SystemStack(PartStack):
    """System nodes that EKS manages, and everything that is installed into the cluster for all users."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        network: NetworkParts,
        key_arn: str,
        observability: ObservabilityParts | None = None,
    ) -> None:
        super().__init__(
            scope,
            cluster,
            "system",
            env=env,
            holds="system nodes, add-ons, charts",
        )
        system = add_system(
            self,
            cluster,
            configurations=script_configurations(cluster),
            plane=imported_control_plane(self, cluster),
            subnet=network.subnet(self),
            further_subnets=network.further_subnets(self),
            security_groups=network.security_groups(self),
            key=key_for(self, cluster.environment, "volumes", kms.Key.from_key_arn(self, "Key", key_arn)),
            metrics=observability.metrics if observability else None,
            control_plane_subnets=network.control_plane_subnets(self) if _managed(cluster) else (),
        )
        if system.karpenter:
            cross(self, "KarpenterProfile", system.karpenter.instance_profile.instance_profile_name)
            queue = system.karpenter.queue.queue_name
            CfnOutput(self, "KarpenterQueue", value=queue, description="News of interruptions")


def _managed(cluster: Cluster) -> bool:
    """Whether AWS's collector scrapes: it has interfaces of its own in two zones."""
    settings = observability_of(cluster)
    return settings is not None and collects(cluster) and settings.collector == "managed"
