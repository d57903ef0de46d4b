"""The network of one cluster: one zone, one private subnet for nodes (VPC User Guide)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any, Literal, TypedDict, Unpack, cast

from aws_cdk import RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct, DependencyGroup

from ultracluster.config.network import FlowLogs, FurtherZone, Network, Perimeter
from ultracluster.guard import report, settings_of
from ultracluster.model.addresses import secondary_blocks, subnets_of
from ultracluster.model.endpoints import Endpoint
from ultracluster.model.parent_zone import control_plane_zone, parent_zone
from ultracluster.network.cluster_egress import ClusterEgress
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.network.subnets import associated_routes, zone_subnet
from ultracluster.security.acknowledgements import acknowledge


class NetworkArguments(TypedDict, total=False):
    """Fields of the configuration's model for a new network, which says what each means."""

    zone_id: str
    cidr: str
    node_cidr: str | None
    egress: Literal["nat", "closed"]
    extra_endpoints: Sequence[str]
    perimeter: Perimeter
    further_zones: dict[str, FurtherZone]
    flow_logs: FlowLogs


class ClusterNetwork(Construct):
    """VPC, node subnet, egress and endpoints, in the zone given by id; parts that exist are used instead.

    Nothing is looked up: what exists is named by its id.

    Attributes:
        config: its settings.
        vpc: the VPC.
        subnet: the private subnet of nodes and file systems; what depends on
            `subnet.internet_connectivity_established` waits for routes and endpoints.
        route_table_id: that of the node subnet; None where the subnet exists.
        database_subnets: two subnets in two zones for RDS; empty unless asked for.
        control_plane_subnets: two subnets in two zones for an EKS control plane; empty unless asked for.
        further_subnets: those of nodes in other zones, by zone id.
        further_route_table_ids: of those of them that are made here, by zone id.
        default_security_group_id: the group that EC2 makes with a VPC; None where the VPC exists.
        egress: the ways out; None where another stack has them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Network | None = None,
        endpoints: Sequence[Endpoint] | None = None,
        second_zone_id: str | None = None,
        control_plane_zone_id: str | None = None,
        flow_log_key: kms.IKey | None = None,
        own_egress: bool = True,
        ipv6: bool = False,
        removal_policy: RemovalPolicy | None = None,
        **settings: Unpack[NetworkArguments],
    ) -> None:
        """Make what does not exist yet.

        Args:
            config: its settings as an environment file has them, instead of `settings`; names also what
                exists; by default the keywords say them.
            endpoints: the VPC endpoints to make; by default those that every cluster needs there.
            second_zone_id: zone of the second database subnet; by default none.
            control_plane_zone_id: zone of the second subnet of an EKS control plane; by default none.
            flow_log_key: encrypts the flow logs, and the log of the calls of the deploy; by default none.
            own_egress: with NAT gateway, endpoints and flow logs; False where a `ClusterEgress` in another
                stack has them, so that file systems need not wait for them; by default True.
            ipv6: the VPC that is made gets a block of Amazon's, and the nodes' subnet one of it: nodes are
                dual stack, and with `egress: nat` reach IPv6 outside by an egress-only internet gateway. By
                default False.
            removal_policy: of the VPC and of the subnets of file systems and database: what is retained in a
                subnet keeps the subnet from being deleted, and the subnet the VPC. By default the CDK's.
            settings: `zone_id`, and the other fields of the model.

        Raises:
            ValueError: settings of the wrong shape.
        """
        super().__init__(scope, construct_id)
        self.database_subnets: list[ec2.ISubnet] = []
        self.control_plane_subnets: list[ec2.ISubnet] = []
        network = settings_of(Network, config, cast("dict[str, Any]", settings), construct="ClusterNetwork")
        report(self, network)
        self.config = self._network = network
        self._removal_policy = removal_policy
        subnets = subnets_of(
            network, database=second_zone_id is not None, control_plane=control_plane_zone_id is not None
        )
        self.default_security_group_id: str | None = None
        self._made: ec2.CfnVPC | None = None
        vpc_id = network.vpc.id if network.vpc else self._make_vpc(own_egress)
        self._blocks = {
            block: self._secondary_block(vpc_id, place, block)
            for place, block in secondary_blocks(network).items()
        }
        self.route_table_id: str | None = None
        self.subnet = self._node_subnet(vpc_id, subnets.nodes, ipv6)
        self.further_subnets: dict[str, ec2.ISubnet] = {}
        self.further_route_table_ids: dict[str, str] = {}
        for zone, further in network.further_zones.items():
            self._further(vpc_id, zone, further)
        cidr = network.vpc.cidr if network.vpc else network.cidr
        self.vpc = existing_vpc(self, "Vpc", vpc_id, cidr=cidr, subnet_id=self.subnet.subnet_id)
        self.egress: ClusterEgress | None = None
        if own_egress:
            self.egress = ClusterEgress(
                self,
                "Egress",
                config=network,
                vpc=self.vpc,
                subnet=self.subnet,
                route_table_id=self.route_table_id,
                further_route_table_ids=self.further_route_table_ids,
                further_subnets=self.further_subnets,
                endpoints=endpoints,
                default_security_group_id=self.default_security_group_id,
                flow_log_key=flow_log_key,
                ipv6=ipv6,
            )
            for subnet in self.further_subnets.values():
                established: object = subnet.internet_connectivity_established
                if isinstance(established, DependencyGroup):
                    established.add(*self.egress.routes, *self.egress.endpoints)
        if subnets.database and second_zone_id:
            self._add_database_subnets(vpc_id, subnets.database, second_zone_id)
        if subnets.control_plane and control_plane_zone_id and self.route_table_id:
            zones = (control_plane_zone(network), control_plane_zone_id)
            cidrs = dict(zip(zones, subnets.control_plane, strict=True))
            self._control_plane(vpc_id, self.route_table_id, cidrs)

    def _node_subnet(self, vpc_id: str, cidr: IPv4Network, ipv6: bool) -> ec2.ISubnet:
        network = self._network
        if network.subnet:
            return existing_subnet(self, "Nodes", network.subnet.id)
        subnet = zone_subnet(
            self,
            "NodeSubnet",
            vpc_id,
            cidr,
            network.zone_id,
            removal_policy=self._removal_policy,
            ipv6=self._ipv6_block() if ipv6 else None,
            block=self._block_of(cidr),
            vpc=self._made,
        )
        routes = associated_routes(self, "NodeRoutes", vpc_id, subnet)
        self.route_table_id = routes.attr_route_table_id
        return existing_subnet(
            self,
            "Nodes",
            subnet.attr_subnet_id,
            route_table_id=self.route_table_id,
            availability_zone=subnet.attr_availability_zone,
        )

    def _add_database_subnets(self, vpc_id: str, cidrs: Sequence[IPv4Network], second_zone_id: str) -> None:
        network = self._network
        # RDS takes one subnet of a Local Zone, or two of zones of the Region
        zones = (parent_zone(network) or network.zone_id, second_zone_id)
        for letter, cidr, zone in zip("AB", cidrs, zones, strict=True):
            name = f"DatabaseSubnet{letter}"
            self.database_subnets.append(self._imported(name, self._subnet(name, vpc_id, cidr, zone)))

    def _further(self, vpc_id: str, zone: str, further: FurtherZone) -> None:
        name = f"Nodes-{zone}"
        if further.subnet_id:
            self.further_subnets[zone] = existing_subnet(self, name, further.subnet_id)
            return
        subnet = self._subnet(f"NodeSubnet-{zone}", vpc_id, IPv4Network(further.cidr), zone)
        table = associated_routes(self, f"NodeRoutes-{zone}", vpc_id, subnet)
        self.further_route_table_ids[zone] = table.attr_route_table_id
        self.further_subnets[zone] = existing_subnet(
            self,
            name,
            subnet.attr_subnet_id,
            route_table_id=table.attr_route_table_id,
            availability_zone=subnet.attr_availability_zone,
        )

    def _imported(self, name: str, subnet: ec2.CfnSubnet, routes: str | None = None) -> ec2.ISubnet:
        return existing_subnet(
            self,
            f"{name}Import",
            subnet.attr_subnet_id,
            route_table_id=routes,
            availability_zone=subnet.attr_availability_zone,
        )

    def _control_plane(self, vpc_id: str, route_table_id: str, cidrs: dict[str, IPv4Network]) -> None:
        for letter, (zone, cidr) in zip("AB", cidrs.items(), strict=True):
            name = f"ControlPlaneSubnet{letter}"
            subnet = zone_subnet(self, name, vpc_id, cidr, zone)
            Tags.of(subnet).add("kubernetes.io/role/internal-elb", "1")
            # the way out of the nodes: what applies charts and manifests runs here
            ec2.CfnSubnetRouteTableAssociation(
                self, f"{name}Routes", route_table_id=route_table_id, subnet_id=subnet.attr_subnet_id
            )
            self.control_plane_subnets.append(self._imported(name, subnet, route_table_id))

    def _secondary_block(self, vpc_id: str, place: str, block: IPv4Network) -> ec2.CfnVPCCidrBlock:
        name = f"NodeBlock-{place}" if place else "NodeBlock"
        cidr_block = ec2.CfnVPCCidrBlock(self, name, vpc_id=vpc_id, cidr_block=str(block))
        if self._removal_policy:
            cidr_block.apply_removal_policy(self._removal_policy)  # a subnet that stays keeps its block
        return cidr_block

    def _block_of(self, cidr: IPv4Network) -> ec2.CfnVPCCidrBlock | None:
        return next((cidr_block for block, cidr_block in self._blocks.items() if cidr.subnet_of(block)), None)

    def _ipv6_block(self) -> ec2.CfnVPCCidrBlock:
        if self._made is None:
            raise ValueError(
                "ClusterNetwork: the IPv6 block of a VPC that exists is its owner's: name a dual-stack subnet"
            )
        return ec2.CfnVPCCidrBlock(
            self, "Ipv6Block", vpc_id=self._made.attr_vpc_id, amazon_provided_ipv6_cidr_block=True
        )

    def _make_vpc(self, egress: bool) -> str:
        vpc = self._made = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=self._network.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
        )
        if self._removal_policy:
            vpc.apply_removal_policy(self._removal_policy)
        Tags.of(vpc).add("Name", self.node.path)
        if not egress:
            acknowledge(vpc, {"AwsSolutions-VPC7": "A ClusterEgress in another stack has its flow log."})
        # the group that EC2 makes with every VPC stays, without rules: a `ClusterEgress` takes them away
        self.default_security_group_id = vpc.attr_default_security_group
        return vpc.attr_vpc_id

    def _subnet(self, name: str, vpc_id: str, cidr: IPv4Network, zone_id: str) -> ec2.CfnSubnet:
        block = self._block_of(cidr)
        return zone_subnet(
            self, name, vpc_id, cidr, zone_id, removal_policy=self._removal_policy, block=block
        )
