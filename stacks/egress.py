"""The stack of the ways out: NAT gateway, VPC endpoints, flow logs. Nodes wait for it; file systems don't."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.egress import add_egress
from ultracluster.clusters.composition.parts import NetworkParts
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack


class EgressStack(PartStack):
    """What nodes need of the network besides the network itself."""

    def __init__(
        self, scope: Construct, cluster: Cluster, *, env: cdk.Environment, network: NetworkParts, key_arn: str
    ) -> None:
        super().__init__(scope, cluster, "egress", env=env, holds="NAT gateway, endpoints, flow logs")
        add_egress(self, cluster, network=network, key=kms.Key.from_key_arn(self, "Key", key_arn))
