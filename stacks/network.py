"""The stack of the network: VPC, subnets and the nodes' security group. File systems wait for it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.network.cluster_network import ClusterNetwork
from ultracluster.network.efa_security_group import EfaSecurityGroup
from ultracluster.stacks.parts import NetworkParts, crossing, removal


class NetworkStack(Stack):
    """Everything of the network that does not exist yet, but for the ways out of it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: Cluster, env: cdk.Environment
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: network in {cluster.environment.network.zone_id}",
        )  # fmt: skip
        already_judged(self)
        settings, database = cluster.environment.network, cluster.environment.storage.accounting_database
        network = ClusterNetwork(
            self,
            "Network",
            network=settings,
            second_zone_id=database.second_zone_id if database and database.kind == "rds-mysql" else None,
            control_plane_zone_id=cluster.kubernetes.second_zone_id if cluster.kubernetes else None,
            egress=False,
            removal_policy=removal(cluster.environment),
        )
        if settings.security_group:
            group_id = settings.security_group.id
        else:
            group_id = EfaSecurityGroup(self, "Nodes", vpc=network.vpc).security_group.security_group_id
        routes = network.route_table_id
        self.parts = NetworkParts(
            vpc_id=crossing(self, "VpcId", network.vpc.vpc_id),
            vpc_cidr=settings.vpc.cidr if settings.vpc else settings.cidr,
            subnet_id=crossing(self, "NodeSubnetId", network.subnet.subnet_id),
            security_group_id=crossing(self, "NodeSecurityGroupId", group_id),
            route_table_id=crossing(self, "NodeRouteTableId", routes) if routes else None,
            database_subnet_ids=tuple(
                crossing(self, f"DatabaseSubnetId{letter}", subnet_id)
                for letter, subnet_id in zip("AB", network.database_subnet_ids, strict=False)
            ),
            control_plane_subnet_ids=_given_control_plane(cluster)
            or tuple(
                crossing(self, f"ControlPlaneSubnetId{letter}", subnet_id)
                for letter, subnet_id in zip("AB", network.control_plane_subnet_ids, strict=False)
            ),
        )


def existing_network(cluster: Cluster) -> NetworkParts:
    """The parts of a network that exists as a whole."""
    network = cluster.environment.network
    assert network.vpc and network.subnet and network.security_group
    return NetworkParts(
        vpc_id=network.vpc.id,
        vpc_cidr=network.vpc.cidr,
        subnet_id=network.subnet.id,
        security_group_id=network.security_group.id,
        control_plane_subnet_ids=_given_control_plane(cluster),
    )


def _given_control_plane(cluster: Cluster) -> tuple[str, ...]:
    return tuple(cluster.kubernetes.control_plane_subnet_ids) if cluster.kubernetes else ()
