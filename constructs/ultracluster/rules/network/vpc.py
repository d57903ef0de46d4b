"""Rules on: a VPC that exists already, endpoints, flow logs."""

from __future__ import annotations

from collections import Counter

from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import ask, drop, relative, write
from ultracluster.model import Cluster
from ultracluster.model.endpoints import closed_endpoints
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.network.ranges import PREREQUISITES
from ultracluster.rules.sets import NET

OWN = "this configuration: `network` makes what it does not name"


@NET.error(10, OWN)
def existing_parts_need_vpc(network: Network) -> Breaches:
    """An existing subnet or security group is given together with its VPC."""
    if network.vpc:
        return
    for key, part in (("subnet", network.subnet), ("security_group", network.security_group)):
        if part:
            yield at(key).breach(
                f"{part.id} lives in a VPC that exists, and another VPC would be made; a "
                "subnet or security group cannot be used in another VPC.",
                drop().noting(f"or network.vpc with the id and cidr of the VPC of {part.id}"),
            )


@NET.error(11, OWN)
def node_cidr_or_subnet(network: Network) -> Breaches:
    """node_cidr is given only for a node subnet that is made."""
    if network.subnet and network.node_cidr:
        yield at("node_cidr").breach(
            f"{network.node_cidr} is given together with the existing subnet {network.subnet.id} "
            f"({network.subnet.cidr}), whose CIDR cannot change.",
            drop().noting("or subnet, to have one made"),
        )


@NET.error(
    12,
    "Amazon VPC User Guide, NAT gateways",
    by_hand="aws ec2 describe-nat-gateways --filter Name=vpc-id,Values=<vpc>",
)
def nat_gateway_needed(network: Network) -> Breaches:
    """A new node subnet in an existing VPC has a route to AWS's services."""
    if network.vpc and not network.subnet and network.egress == "nat" and not network.vpc.nat_gateway_id:
        yield at("vpc").breach(
            f"egress is `nat` and the node subnet is made in {network.vpc.id}, where no NAT "
            "gateway is made: nodes would reach neither AWS nor the internet, and "
            "none would join the cluster.",
            ask("fact", "nat_gateway_id: nat-... of a NAT gateway in that VPC, or egress: closed"),
        )


@NET.error(13, OWN)
def nat_gateway_unused(network: Network) -> Breaches:
    """nat_gateway_id is given only for a node subnet that is made and may reach the internet."""
    if not (network.vpc and network.vpc.nat_gateway_id):
        return
    if network.egress == "closed":
        why = "egress is `closed`: there is no internet route that could lead to it."
    elif network.subnet:
        why = f"the route table of the existing subnet {network.subnet.id} is not changed."
    else:
        return
    yield at("vpc", "nat_gateway_id").breach(f"{network.vpc.nat_gateway_id} would not be used: {why}", drop())


@NET.warning(14, OWN)
def ignored_with_existing_vpc(network: Network) -> Breaches:
    """cidr and flow_logs are not given for an existing VPC."""
    if not network.vpc:
        return
    for key in ("cidr", "flow_logs"):
        if key in network.model_fields_set:
            yield at(key).breach(
                f"`{key}` is about a VPC that is made; {network.vpc.id} exists and is left as it is.", drop()
            )


@NET.warning(
    20,
    "the catalogue: endpoints.json, which names a source for each service",
    by_hand="aws ec2 describe-vpc-endpoints --filters Name=vpc-id,Values=<vpc> "
    "--query 'VpcEndpoints[].[ServiceName,State,PrivateDnsEnabled]'",
)
def closed_needs_endpoints(network: Network, cluster: Cluster) -> Breaches:
    """Without an internet route, an existing VPC has every endpoint that nodes need."""
    if network.vpc and network.egress == "closed" and not network.vpc.create_endpoints:
        names = ", ".join(
            f"{endpoint.service} (gateway)" if endpoint.kind == "gateway" else endpoint.service
            for endpoint in closed_endpoints(cluster)
        )
        out = ""
        if network.security_group is None:
            networks = ", ".join(network.vpc.endpoint_networks or (network.vpc.cidr,))
            out = f" Nodes are let out to {networks} (vpc.endpoint_networks) and the gateways only."
        yield at("vpc", "create_endpoints").breach(
            f"nodes reach AWS through endpoints only, and none is made in {network.vpc.id}. It "
            f"must have, with private DNS and open to the nodes on TCP 443: {names}.{out}",
            write(True).noting("if it has none; else look, and acknowledge this"),
        )


@NET.warning(
    21,
    "Amazon VPC User Guide, Gateway endpoints for Amazon S3 (route tables)",
    by_hand="aws ec2 describe-route-tables --filters Name=association.subnet-id,Values=<subnet>",
)
def gateway_needs_route_table(network: Network) -> Breaches:
    """create_endpoints is set only where the node subnet is made as well."""
    if network.vpc and network.vpc.create_endpoints and network.subnet:
        yield at("vpc", "create_endpoints").breach(
            "the gateway endpoint to S3 is an entry in route tables, and the route table of "
            f"{network.subnet.id} is not known here: without the entry its nodes do not use the "
            "endpoint.",
            write(False).noting("with false the endpoints are made by hand"),
        )


@NET.error(22, OWN)
def extra_endpoints_unused(network: Network) -> Breaches:
    """extra_endpoints are given only where endpoints are made."""
    if network.extra_endpoints and network.vpc and not network.vpc.create_endpoints:
        yield at("extra_endpoints").breach(
            f"{', '.join(network.extra_endpoints)} would not be made: no endpoint is made in "
            f"{network.vpc.id}, because vpc.create_endpoints is off.",
            relative({("vpc", "create_endpoints"): True}, up=1) | drop(),
        )


@NET.error(23, "EC2 API reference, CreateVpcEndpoint (private DNS: once per service and VPC)")
def extra_endpoint_names(network: Network, cluster: Cluster) -> Breaches:
    """Each extra endpoint is given once, by its short name."""
    counts = Counter(network.extra_endpoints)
    endpoints = {endpoint.service: endpoint for endpoint in closed_endpoints(cluster)}
    for index, service in enumerate(network.extra_endpoints):
        path: YamlPath = ("extra_endpoints", index)
        prefix = f"com.amazonaws.{cluster.region}."
        if service.startswith("com.amazonaws."):
            short = service.removeprefix(prefix) if service.startswith(prefix) else service.split(".", 3)[-1]
            yield at(*path).breach(
                f"`{service}` carries the prefix com.amazonaws.<region>., which is added to each name.",
                drop() if short in network.extra_endpoints else write(short),
            )
        elif network.extra_endpoints.index(service) != index:
            yield at(*path).breach(
                f"`{service}` is given {counts[service]} times; EC2 refuses a second endpoint with "
                "private DNS for one service.",
                drop(),
            )
        elif network.egress == "closed" and service in endpoints and endpoints[service].kind == "interface":
            yield at(*path).breach(
                f"`{service}` is made already, because egress is `closed` "
                f"({endpoints[service].reason}); EC2 refuses a second endpoint with private DNS for one "
                "service.",
                drop(),
            )


@NET.warning(
    24,
    f"EC2 User Guide, Get started with EFA and MPI; {PREREQUISITES}; awslabs/awsome-distributed-ai#259",
    by_hand="aws ec2 describe-security-group-rules --filters Name=group-id,Values=<group> "
    "--query 'SecurityGroupRules[?IpProtocol==`-1`].[IsEgress,ReferencedGroupInfo.GroupId]'",
)
def security_group_self_rules(network: Network) -> Breaches:
    """An existing security group lets all traffic in from itself and out to itself."""
    if group := network.security_group:
        yield at("security_group", "id").breach(
            f"the rules of {group.id} cannot be seen here. EFA needs all traffic (protocol -1) in "
            f"from {group.id} and out to {group.id}; outbound 0.0.0.0/0 does not replace the "
            "second. Without them the EFA health check ends the nodes before any script runs, and "
            "no log is left.",
            ask(
                "action",
                f"look with: aws ec2 describe-security-group-rules --filters Name=group-id,Values={group.id}",
            ),
        )


@NET.warning(25, "Amazon VPC User Guide, Logging IP traffic using VPC Flow Logs")
def flow_log_volume(network: Network) -> Breaches:
    """Flow logs record only rejected traffic."""
    if network.vpc is None and network.flow_logs.traffic == "all":
        yield at("flow_logs", "traffic").breach(
            "`all` records every accepted connection of every node and file server, too, and "
            "CloudWatch Logs bills what it takes in. EFA traffic is in neither setting: it "
            "bypasses the IP stack.",
            write("reject"),
        )
