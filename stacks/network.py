"""The stack of the network: VPC, subnets and the nodes' security group. File systems wait for it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput
from constructs import Construct

from ultracluster.clusters.composition.network import add_network
from ultracluster.model import Cluster
from ultracluster.parallelcluster.deployed_values import FURTHER_SUBNETS
from ultracluster.stacks.part import PartStack, cross


class NetworkStack(PartStack):
    """Everything of the network that does not exist yet, but for the ways out of it."""

    def __init__(self, scope: Construct, cluster: Cluster, *, env: cdk.Environment) -> None:
        zone = cluster.environment.network.zone_id
        super().__init__(scope, cluster, "network", env=env, holds=f"network in {zone}")
        parts = add_network(self, cluster, cross=cross)
        self.parts = parts.ids_only()
        if parts.made and parts.made.further_subnets and cluster.traits.own_stack:
            value = ",".join(
                f"{zone}={further_subnet.subnet_id}"
                for zone, further_subnet in parts.made.further_subnets.items()
            )
            used = "For `ultracluster export parallelcluster`"
            CfnOutput(self, FURTHER_SUBNETS, value=value, description=used)
