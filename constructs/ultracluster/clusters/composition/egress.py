"""The ways out: NAT gateway, VPC endpoints, flow logs. Nodes wait for them; file systems do not."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import NetworkParts, removal
from ultracluster.model import Cluster
from ultracluster.model.endpoints import closed_endpoints, made_endpoints
from ultracluster.model.perimeter import perimeter_of
from ultracluster.network.cluster_egress import ClusterEgress


def add_egress(scope: Construct, cluster: Cluster, *, network: NetworkParts, key: kms.IKey) -> ClusterEgress:
    """Add what nodes need of the network besides the network itself."""
    settings = cluster.environment.network
    egress = ClusterEgress(
        scope,
        "Egress",
        config=settings,
        vpc=network.vpc(scope),
        subnet=network.subnet(scope),
        route_table_id=network.route_table_id,
        further_route_table_ids=network.further_route_table_ids,
        further_subnets=network.further_subnets(scope),
        endpoints=made_endpoints(cluster),
        perimeter=perimeter_of(cluster),
        default_security_group_id=network.default_security_group_id,
        flow_log_key=key_for(scope, cluster.environment, "logs", key),
        flow_log_removal=removal(cluster.environment),
        ipv6=cluster.environment.dual_stack,
    )
    # the rules of a group that exists are its owner's
    if settings.egress == "closed" and settings.security_group is None:
        gateways = [
            closed_endpoint.service
            for closed_endpoint in closed_endpoints(cluster)
            if closed_endpoint.kind == "gateway"
        ]
        egress.admit("Nodes", clients=network.connectable(scope), gateways=gateways)
    return egress
