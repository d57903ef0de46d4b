"""The network: VPC, subnets and the nodes' security group. File systems wait for it."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.clusters.composition.parts import Cross, MadeNetwork, NetworkParts, removal
from ultracluster.model import Cluster
from ultracluster.model.addresses import subnets
from ultracluster.network.cluster_network import ClusterNetwork
from ultracluster.network.efa_security_group import WEB_PORTS, EfaSecurityGroup


def add_network(scope: Construct, cluster: Cluster, *, cross: Cross) -> NetworkParts:
    """Add everything of the network that does not exist yet, but for the ways out of it."""
    settings, database = cluster.environment.network, cluster.environment.storage.accounting_database
    network = ClusterNetwork(
        scope,
        "Network",
        config=settings,
        second_zone_id=database.second_zone_id if database and database.kind == "rds-mysql" else None,
        control_plane_zone_id=cluster.kubernetes.second_zone_id if cluster.kubernetes else None,
        own_egress=False,
        ipv6=cluster.environment.dual_stack and settings.subnet is None,
        removal_policy=removal(cluster.environment),
    )
    if settings.security_group:
        group = ec2.SecurityGroup.from_security_group_id(
            scope, "NodeSecurityGroup", settings.security_group.id, mutable=False
        )
    else:
        # in a closed network their way out is `add_egress`'s
        ports = () if settings.egress == "closed" else WEB_PORTS
        six = cluster.environment.dual_stack
        group = EfaSecurityGroup(scope, "Nodes", vpc=network.vpc, web_ports=ports, ipv6=six).security_group
    routes, default = network.route_table_id, network.default_security_group_id
    existing = _given_control_plane(cluster)
    return NetworkParts(
        vpc_id=cross(scope, "VpcId", network.vpc.vpc_id),
        vpc_cidr=settings.vpc.cidr if settings.vpc else settings.cidr,
        nodes_cidr=str(subnets(cluster).nodes),
        subnet_id=cross(scope, "NodeSubnetId", network.subnet.subnet_id),
        security_group_ids=(cross(scope, "NodeSecurityGroupId", group.security_group_id),),
        route_table_id=cross(scope, "NodeRouteTableId", routes) if routes else None,
        further_subnet_ids={
            zone: cross(scope, f"NodeSubnetId-{zone}", subnet.subnet_id)
            for zone, subnet in network.further_subnets.items()
        },
        further_route_table_ids={
            zone: cross(scope, f"NodeRouteTableId-{zone}", table)
            for zone, table in network.further_route_table_ids.items()
        },
        default_security_group_id=cross(scope, "DefaultSecurityGroupId", default) if default else None,
        database_subnet_ids=tuple(
            cross(scope, f"DatabaseSubnetId{letter}", subnet.subnet_id)
            for letter, subnet in zip("AB", network.database_subnets, strict=False)
        ),
        control_plane_subnet_ids=existing
        or tuple(
            cross(scope, f"ControlPlaneSubnetId{letter}", subnet.subnet_id)
            for letter, subnet in zip("AB", network.control_plane_subnets, strict=False)
        ),
        made=MadeNetwork(
            vpc=network.vpc,
            subnet=network.subnet,
            security_groups=[group],
            further_subnets=network.further_subnets,
            database_subnets=network.database_subnets,
            control_plane_subnets=() if existing else network.control_plane_subnets,
        ),
    )


def existing_network(cluster: Cluster) -> NetworkParts:
    """The parts of a network that exists as a whole."""
    network = cluster.environment.network
    assert network.vpc and network.subnet and network.security_group
    return NetworkParts(
        vpc_id=network.vpc.id,
        vpc_cidr=network.vpc.cidr,
        nodes_cidr=str(subnets(cluster).nodes),
        subnet_id=network.subnet.id,
        security_group_ids=(network.security_group.id,),
        further_subnet_ids={
            zone: further.subnet_id for zone, further in network.further_zones.items() if further.subnet_id
        },
        control_plane_subnet_ids=_given_control_plane(cluster),
    )


def _given_control_plane(cluster: Cluster) -> tuple[str, ...]:
    return tuple(cluster.kubernetes.control_plane_subnet_ids) if cluster.kubernetes else ()
