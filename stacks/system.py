"""The stack of a Kubernetes cluster's system nodes and of what runs on them.

Add-ons, device plugins, schedulers and their queues, Karpenter. It waits for the control plane and the ways
out and is made while the accelerated nodes are, which need none of it to join.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.eks.system import add_system
from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet
from ultracluster.stacks import imports
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.parts import NetworkParts, crossing

SUFFIX = "system"


class SystemStack(Stack):
    """System nodes that EKS manages, and everything that is installed into the cluster for all users."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        network: NetworkParts,
        key_arn: str,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: system nodes, add-ons, charts",
        )  # fmt: skip
        already_judged(self)
        system = add_system(
            self,
            cluster,
            configurations=script_configurations(cluster),
            plane=imported_control_plane(self, cluster),
            subnet=existing_subnet(self, "Nodes", network.subnet_id),
            security_groups=[imports.nodes_group(self, network)],
            key=kms.Key.from_key_arn(self, "Key", key_arn),
        )
        if system.karpenter:
            crossing(self, "KarpenterProfile", system.karpenter.instance_profile.instance_profile_name)
            queue = system.karpenter.queue.queue_name
            CfnOutput(self, "KarpenterQueue", value=queue, description="News of interruptions")
