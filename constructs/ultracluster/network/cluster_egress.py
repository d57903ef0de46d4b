"""The ways out of a network: NAT gateway, VPC endpoints; and the record of what took them, the flow logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup

from ultracluster.catalog import border_group
from ultracluster.config.network import Network
from ultracluster.model.addresses import subnets_of, vpc_blocks
from ultracluster.model.endpoints import Endpoint, made_endpoints_of
from ultracluster.model.parent_zone import parent_zone
from ultracluster.model.perimeter import Perimeter, perimeter_of_network
from ultracluster.network.admission import NOWHERE
from ultracluster.network.closed_egress import ClosedEgress
from ultracluster.network.default_group import EmptyDefaultGroup
from ultracluster.network.subnets import associated_routes, zone_subnet
from ultracluster.security.cluster_key import allow_use
from ultracluster.security.log_retention import retention
from ultracluster.security.perimeter import endpoint_policy
from ultracluster.security.principals import trusted


class ClusterEgress(Construct):
    """What nodes need of the network besides the network itself, and file systems do not.

    It is made while the file systems are: nodes start after both.

    Attributes:
        routes: the way out of the nodes' subnet, for dependencies.
        endpoints: the VPC endpoints, for dependencies.
        endpoint_group: the security group of the interface endpoints; None where none is made.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Network,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        route_table_id: str | None = None,
        further_route_table_ids: Mapping[str, str] | None = None,
        further_subnets: Mapping[str, ec2.ISubnet] | None = None,
        endpoints: Sequence[Endpoint] | None = None,
        perimeter: Perimeter | None = None,
        default_security_group_id: str | None = None,
        flow_log_key: kms.IKey | None = None,
        flow_log_removal: RemovalPolicy = RemovalPolicy.DESTROY,
        ipv6: bool = False,
    ) -> None:
        """Make what does not exist yet.

        Args:
            config: the network's settings.
            vpc: the VPC; its flow logs are made with it, so not for one that exists.
            subnet: the nodes' subnet, in which interface endpoints are. What depends on its
                `internet_connectivity_established` waits for routes and endpoints that are made here.
            route_table_id: that of the nodes' subnet; None where the subnet is someone else's; by default
                none.
            further_route_table_ids: those of nodes' subnets in other zones, by zone id. They take the same
                ways out. By default none.
            further_subnets: those of nodes in other zones, by zone id. For a Local Zone interface endpoints
                are in one of them, because Local Zones have none. By default none.
            endpoints: the VPC endpoints to make; by default those that every cluster needs there.
            perimeter: what may be reached through them; by default `config.perimeter`.
            default_security_group_id: that of a VPC that is made here; its rules are taken away; by default
                none.
            flow_log_key: encrypts the flow logs, and the log of the calls that take those rules away; by
                default none.
            flow_log_removal: of the flow logs; by default it is destroyed.
            ipv6: nodes are dual stack: with `egress: nat` they reach IPv6 outside, and nothing there reaches
                them. By default False.
        """
        super().__init__(scope, construct_id)
        self._network = config
        self._vpc_id = vpc.vpc_id
        self._key = flow_log_key
        self._ipv6 = ipv6
        self._perimeter = perimeter or perimeter_of_network(config)
        self.endpoint_group: ec2.CfnSecurityGroup | None = None
        self.routes: list[ec2.CfnRoute] = []
        self.endpoints: list[ec2.CfnVPCEndpoint] = []
        if config.vpc is None:
            self._flow_log(flow_log_key, flow_log_removal)
        tables = {"": route_table_id} if route_table_id else {}
        tables |= {f"-{zone}": table for zone, table in (further_route_table_ids or {}).items()}
        if tables and config.egress == "nat":
            # the order of zones and sizes is that of the whole network; neither moves the public subnet
            public = subnets_of(config, database=False, control_plane=False).public
            self._nat(public, tables)
            if ipv6 and route_table_id and config.vpc is None:
                self._out_of_ipv6(route_table_id)
        own_endpoints = made_endpoints_of(config) if endpoints is None else endpoints
        zone = parent_zone(config) or config.zone_id
        self._endpoints(
            (further_subnets or {}).get(zone, subnet).subnet_id, list(tables.values()), own_endpoints
        )
        self._gateways = [endpoint.service for endpoint in own_endpoints if endpoint.kind == "gateway"]
        if default_security_group_id:
            EmptyDefaultGroup(self, "DefaultGroup", group_id=default_security_group_id, key=flow_log_key)
        established: object = subnet.internet_connectivity_established
        if isinstance(established, DependencyGroup):
            established.add(*self.routes, *self.endpoints)

    def admit(
        self, construct_id: str, *, clients: ec2.IConnectable, gateways: Sequence[str] | None = None
    ) -> ClosedEgress:
        """Let members of security groups reach the endpoints, and nothing else outside of the VPC.

        Of `egress: closed`, for groups that let nothing out themselves.

        Args:
            construct_id: id below this.
            clients: a security group, or what is in some.
            gateways: services with a gateway endpoint; by default those that are made here, and S3.
        """
        group, vpc = self.endpoint_group, self._network.vpc
        networks = vpc.endpoint_networks if vpc else ()
        return ClosedEgress(
            self,
            construct_id,
            clients=clients,
            endpoint_group_id=group.attr_group_id if group else None,
            networks=networks or [str(vpc_block) for vpc_block in vpc_blocks(self._network)],
            gateways=gateways or self._gateways or ("s3",),
            key=self._key,
        )

    def _nat(self, public: IPv4Network | None, tables: Mapping[str, str]) -> None:
        if self._network.vpc:
            nat_id = self._network.vpc.nat_gateway_id
        else:
            assert public is not None
            gateway = ec2.CfnInternetGateway(self, "InternetGateway")
            attachment = ec2.CfnVPCGatewayAttachment(
                self,
                "InternetGatewayAttachment",
                vpc_id=self._vpc_id,
                internet_gateway_id=gateway.attr_internet_gateway_id,
            )
            zone = parent_zone(self._network) or self._network.zone_id
            subnet = zone_subnet(self, "PublicSubnet", self._vpc_id, public, zone)
            table = associated_routes(self, "PublicRoutes", self._vpc_id, subnet)
            out = ec2.CfnRoute(
                self, "PublicRoute", route_table_id=table.attr_route_table_id,
                destination_cidr_block="0.0.0.0/0", gateway_id=gateway.attr_internet_gateway_id,
            )  # fmt: skip
            out.add_resource_dependency(attachment)
            # EC2 associates only an address of the border group that the gateway's zone has
            address = ec2.CfnEIP(self, "NatAddress", domain="vpc", network_border_group=border_group(zone))
            nat = ec2.CfnNatGateway(
                self, "Nat", subnet_id=subnet.attr_subnet_id, allocation_id=address.attr_allocation_id
            )
            nat.add_resource_dependency(out)
            nat_id = nat.attr_nat_gateway_id
        for suffix, table_id in tables.items():
            route = ec2.CfnRoute(
                self, f"NodeRoute{suffix}", route_table_id=table_id,
                destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat_id,
            )  # fmt: skip
            self.routes.append(route)

    def _out_of_ipv6(self, route_table_id: str) -> None:
        gateway = ec2.CfnEgressOnlyInternetGateway(self, "Ipv6Gateway", vpc_id=self._vpc_id)
        route = ec2.CfnRoute(
            self, "NodeIpv6Route", route_table_id=route_table_id,
            destination_ipv6_cidr_block="::/0", egress_only_internet_gateway_id=gateway.attr_id,
        )  # fmt: skip
        self.routes.append(route)

    def _endpoints(self, subnet_id: str, table_ids: Sequence[str], endpoints: Sequence[Endpoint]) -> None:
        prefix = f"com.amazonaws.{Stack.of(self).region}"
        for endpoint in endpoints:
            # a gateway is an entry in a route table; that of a subnet that exists is its owner's
            if endpoint.kind == "gateway" and table_ids:
                gateway = ec2.CfnVPCEndpoint(
                    self, f"Gateway-{endpoint.service}", vpc_id=self._vpc_id, vpc_endpoint_type="Gateway",
                    service_name=f"{prefix}.{endpoint.service}", route_table_ids=list(table_ids),
                    policy_document=endpoint_policy(self, endpoint.service, self._perimeter),
                    # else S3's IPv6 addresses are reached past the endpoint, and its policy
                    ip_address_type="dualstack" if self._ipv6 and endpoint.service == "s3" else None,
                )  # fmt: skip
                self.endpoints.append(gateway)
        interfaces = [endpoint.service for endpoint in endpoints if endpoint.kind == "interface"]
        self.endpoint_group = group = self._endpoint_group() if interfaces else None
        for name in interfaces:
            assert group is not None
            interface = ec2.CfnVPCEndpoint(
                self, f"Endpoint-{name}", vpc_id=self._vpc_id, vpc_endpoint_type="Interface",
                private_dns_enabled=True, service_name=f"{prefix}.{name}",
                subnet_ids=[subnet_id], security_group_ids=[group.attr_group_id],
                policy_document=endpoint_policy(self, name, self._perimeter),
            )  # fmt: skip
            self.endpoints.append(interface)

    def _endpoint_group(self) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self, "EndpointGroup", vpc_id=self._vpc_id,
            group_description="Interface endpoints: HTTPS from the VPC",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp", from_port=443, to_port=443, description="HTTPS from the VPC",
                    cidr_ip=str(block),
                )
                for block in vpc_blocks(self._network)
            ],
            security_group_egress=[NOWHERE],  # endpoints only answer
        )  # fmt: skip

    def _flow_log(self, key: kms.IKey | None, removal: RemovalPolicy) -> None:
        flow_logs = self._network.flow_logs
        if key:
            allow_use(self, key, "logs")
        group = logs.LogGroup(
            self, "FlowLogs", encryption_key=key, removal_policy=removal,
            retention=retention(flow_logs.retention_days),
        )  # fmt: skip
        role = iam.Role(self, "FlowLogRole", assumed_by=trusted(self, "vpc-flow-logs.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                resources=[group.log_group_arn],
            )
        )
        ec2.CfnFlowLog(
            self, "FlowLog", resource_id=self._vpc_id, resource_type="VPC",
            traffic_type=flow_logs.traffic.upper(), log_group_name=group.log_group_name,
            deliver_logs_permission_arn=role.role_arn, max_aggregation_interval=600,
        )  # fmt: skip
