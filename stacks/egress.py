"""The stack of the ways out: NAT gateway, VPC endpoints, flow logs. Nodes wait for it; file systems don't."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.model.endpoints import made_endpoints
from ultracluster.network.cluster_egress import ClusterEgress
from ultracluster.stacks.parts import NetworkParts


class EgressStack(Stack):
    """What nodes need of the network besides the network itself."""

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
            description=f"Ultracluster {cluster.name}: NAT gateway, endpoints, flow logs",
        )  # fmt: skip
        already_judged(self)
        ClusterEgress(
            self,
            "Egress",
            network=cluster.environment.network,
            vpc_id=network.vpc_id,
            subnet_id=network.subnet_id,
            route_table_id=network.route_table_id,
            endpoints=made_endpoints(cluster),
            flow_log_key=kms.Key.from_key_arn(self, "Key", key_arn),
        )
