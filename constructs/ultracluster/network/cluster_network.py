"""The network of one cluster: one zone, one private subnet for nodes (VPC User Guide)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from aws_cdk import RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.config.network import Network
from ultracluster.network.admission import NOWHERE
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.rules.address_budget import subnets_of
from ultracluster.rules.endpoints import Endpoint, made_endpoints_of
from ultracluster.security.principals import service


class ClusterNetwork(Construct):
    """VPC, node subnet, egress and endpoints, in the zone given by id; parts that exist are used instead.

    Nothing is looked up: what exists is named by its id.

    Attributes:
        vpc: the VPC.
        subnet: the private subnet of nodes and file systems.
        database_subnet_ids: two subnets in two zones for RDS; empty unless asked for.
        control_plane_subnet_ids: two subnets in two zones for an EKS control plane; empty unless asked for.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        network: Network,
        endpoints: Sequence[Endpoint] | None = None,
        second_zone_id: str | None = None,
        control_plane_zone_id: str | None = None,
        flow_log_key: kms.IKey | None = None,
    ) -> None:
        """Make what does not exist yet.

        Args:
            network: what was asked for.
            endpoints: the VPC endpoints to make; by default those that every cluster needs there.
            second_zone_id: zone of the second database subnet.
            control_plane_zone_id: zone of the second subnet of an EKS control plane.
            flow_log_key: encrypts the flow logs.
        """
        super().__init__(scope, construct_id)
        self.database_subnet_ids: list[str] = []
        self.control_plane_subnet_ids: list[str] = []
        self._network = network
        subnets = subnets_of(
            network, database=second_zone_id is not None, control_plane=control_plane_zone_id is not None
        )
        vpc_id = network.vpc.id if network.vpc else self._make_vpc(flow_log_key)
        if network.subnet:
            self.subnet = existing_subnet(self, "Nodes", network.subnet.id)
            routes = None
        else:
            cfn = self._subnet("NodeSubnet", vpc_id, subnets.nodes, network.zone_id)
            routes = self._routes("NodeRoutes", vpc_id, cfn)
            self.subnet = existing_subnet(
                self, "Nodes", cfn.attr_subnet_id, route_table_id=routes.attr_route_table_id
            )
        cidr = network.vpc.cidr if network.vpc else network.cidr
        self.vpc = existing_vpc(self, "Vpc", vpc_id, cidr=cidr, subnet_id=self.subnet.subnet_id)
        if routes and network.egress == "nat":
            self._nat(vpc_id, subnets.public, routes)
        self._endpoints(vpc_id, routes, made_endpoints_of(network) if endpoints is None else endpoints)
        if subnets.database and second_zone_id:
            for name, cidr, zone in zip(
                ("DatabaseSubnetA", "DatabaseSubnetB"),
                subnets.database,
                (network.zone_id, second_zone_id),
                strict=True,
            ):
                self.database_subnet_ids.append(self._subnet(name, vpc_id, cidr, zone).attr_subnet_id)
        if subnets.control_plane and control_plane_zone_id and routes:
            self._control_plane(
                vpc_id,
                routes,
                dict(zip((network.zone_id, control_plane_zone_id), subnets.control_plane, strict=True)),
            )

    def _control_plane(self, vpc_id: str, routes: ec2.CfnRouteTable, cidrs: dict[str, IPv4Network]) -> None:
        for letter, (zone, cidr) in zip("AB", cidrs.items(), strict=True):
            name = f"ControlPlaneSubnet{letter}"
            subnet = self._subnet(name, vpc_id, cidr, zone)
            Tags.of(subnet).add("kubernetes.io/role/internal-elb", "1")
            # the way out of the nodes: what applies charts and manifests runs here
            ec2.CfnSubnetRouteTableAssociation(
                self,
                f"{name}Routes",
                route_table_id=routes.attr_route_table_id,
                subnet_id=subnet.attr_subnet_id,
            )
            self.control_plane_subnet_ids.append(subnet.attr_subnet_id)

    def _make_vpc(self, flow_log_key: kms.IKey | None) -> str:
        vpc = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=self._network.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
        )
        Tags.of(vpc).add("Name", self.node.path)
        # the group that EC2 makes with every VPC stays, but nothing here is ever put into it
        self._flow_log(vpc, flow_log_key)
        return vpc.attr_vpc_id

    def _subnet(self, name: str, vpc_id: str, cidr: IPv4Network, zone_id: str) -> ec2.CfnSubnet:
        subnet = ec2.CfnSubnet(
            self,
            name,
            vpc_id=vpc_id,
            cidr_block=str(cidr),
            availability_zone_id=zone_id,
            map_public_ip_on_launch=False,
        )
        Tags.of(subnet).add("Name", f"{self.node.path}/{name}")
        return subnet

    def _routes(self, name: str, vpc_id: str, subnet: ec2.CfnSubnet) -> ec2.CfnRouteTable:
        table = ec2.CfnRouteTable(self, name, vpc_id=vpc_id)
        ec2.CfnSubnetRouteTableAssociation(
            self,
            f"{name}Association",
            route_table_id=table.attr_route_table_id,
            subnet_id=subnet.attr_subnet_id,
        )
        return table

    def _nat(self, vpc_id: str, public: IPv4Network | None, routes: ec2.CfnRouteTable) -> None:
        if self._network.vpc:
            nat_id = self._network.vpc.nat_gateway_id
        else:
            assert public is not None
            gateway = ec2.CfnInternetGateway(self, "InternetGateway")
            attachment = ec2.CfnVPCGatewayAttachment(
                self,
                "InternetGatewayAttachment",
                vpc_id=vpc_id,
                internet_gateway_id=gateway.attr_internet_gateway_id,
            )
            subnet = self._subnet("PublicSubnet", vpc_id, public, self._network.zone_id)
            table = self._routes("PublicRoutes", vpc_id, subnet)
            out = ec2.CfnRoute(
                self, "PublicRoute", route_table_id=table.attr_route_table_id,
                destination_cidr_block="0.0.0.0/0", gateway_id=gateway.attr_internet_gateway_id,
            )  # fmt: skip
            out.add_resource_dependency(attachment)
            address = ec2.CfnEIP(self, "NatAddress", domain="vpc")
            nat = ec2.CfnNatGateway(
                self, "Nat", subnet_id=subnet.attr_subnet_id, allocation_id=address.attr_allocation_id
            )
            nat.add_resource_dependency(out)
            nat_id = nat.attr_nat_gateway_id
        ec2.CfnRoute(
            self, "NodeRoute", route_table_id=routes.attr_route_table_id,
            destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat_id,
        )  # fmt: skip

    def _endpoints(
        self, vpc_id: str, routes: ec2.CfnRouteTable | None, endpoints: Sequence[Endpoint]
    ) -> None:
        prefix = f"com.amazonaws.{Stack.of(self).region}"
        for endpoint in endpoints:
            # a gateway is an entry in a route table; that of a subnet that exists is its owner's
            if endpoint.kind == "gateway" and routes:
                ec2.CfnVPCEndpoint(
                    self, f"Gateway-{endpoint.service}", vpc_id=vpc_id, vpc_endpoint_type="Gateway",
                    service_name=f"{prefix}.{endpoint.service}", route_table_ids=[routes.attr_route_table_id],
                )  # fmt: skip
        interfaces = [endpoint.service for endpoint in endpoints if endpoint.kind == "interface"]
        group = self._endpoint_group(vpc_id) if interfaces else None
        for name in interfaces:
            assert group is not None
            ec2.CfnVPCEndpoint(
                self, f"Endpoint-{name}", vpc_id=vpc_id, vpc_endpoint_type="Interface",
                private_dns_enabled=True, service_name=f"{prefix}.{name}",
                subnet_ids=[self.subnet.subnet_id], security_group_ids=[group.attr_group_id],
            )  # fmt: skip

    def _endpoint_group(self, vpc_id: str) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self, "EndpointGroup", vpc_id=vpc_id, group_description="Interface endpoints: HTTPS from the VPC",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp", from_port=443, to_port=443, description="HTTPS from the VPC",
                    cidr_ip=self._network.vpc.cidr if self._network.vpc else self._network.cidr,
                )
            ],
            security_group_egress=[NOWHERE],  # endpoints only answer
        )  # fmt: skip

    def _flow_log(self, vpc: ec2.CfnVPC, key: kms.IKey | None) -> None:
        wanted = self._network.flow_logs
        group = logs.LogGroup(
            self, "FlowLogs", encryption_key=key, removal_policy=RemovalPolicy.DESTROY,
            retention=logs.RetentionDays[_RETENTION[wanted.retention_days]],
        )  # fmt: skip
        role = iam.Role(self, "FlowLogRole", assumed_by=service("vpc-flow-logs.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                resources=[group.log_group_arn],
            )
        )
        ec2.CfnFlowLog(
            self, "FlowLog", resource_id=vpc.attr_vpc_id, resource_type="VPC",
            traffic_type=wanted.traffic.upper(), log_group_name=group.log_group_name,
            deliver_logs_permission_arn=role.role_arn, max_aggregation_interval=600,
        )  # fmt: skip


_RETENTION = {
    1: "ONE_DAY", 3: "THREE_DAYS", 5: "FIVE_DAYS", 7: "ONE_WEEK", 14: "TWO_WEEKS", 30: "ONE_MONTH",
    60: "TWO_MONTHS", 90: "THREE_MONTHS", 120: "FOUR_MONTHS", 150: "FIVE_MONTHS", 180: "SIX_MONTHS",
    365: "ONE_YEAR", 400: "THIRTEEN_MONTHS", 545: "EIGHTEEN_MONTHS", 731: "TWO_YEARS", 1827: "FIVE_YEARS",
}  # fmt: skip
