"""The stack of the network: VPC, subnets and the nodes' security group. File systems wait for it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from ultracluster.clusters.composition.network import add_network
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack, cross


class NetworkStack(PartStack):
    """Everything of the network that does not exist yet, but for the ways out of it."""

    def __init__(self, scope: Construct, cluster: Cluster, *, env: cdk.Environment) -> None:
        zone = cluster.environment.network.zone_id
        super().__init__(scope, cluster, "network", env=env, holds=f"network in {zone}")
        self.parts = add_network(self, cluster, cross=cross).ids_only()
