"""The ways out: NAT gateway, VPC endpoints, flow logs. Nodes wait for them; file systems do not."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts
from ultracluster.model import Cluster
from ultracluster.model.endpoints import made_endpoints
from ultracluster.network.cluster_egress import ClusterEgress


def add_egress(scope: Construct, cluster: Cluster, *, network: NetworkParts, key: kms.IKey) -> ClusterEgress:
    """Add what nodes need of the network besides the network itself."""
    return ClusterEgress(
        scope,
        "Egress",
        config=cluster.environment.network,
        vpc=network.vpc(scope),
        subnet=network.subnet(scope),
        route_table_id=network.route_table_id,
        endpoints=made_endpoints(cluster),
        flow_log_key=key_for(scope, cluster.environment, "logs", key),
    )
