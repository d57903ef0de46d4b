"""Rules on: Kubernetes on EKS. Zones and subnets of the control plane, networks of services and clients."""

from __future__ import annotations

from ipaddress import IPv4Network

from ultracluster.catalog import Region
from ultracluster.catalog.address_ranges import public_addresses, range_of
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.zone_kinds import ZONE_WORDS, refused_kinds, zone_kind
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Eks, HyperPodEks, PublicEndpoint
from ultracluster.config.network import Network
from ultracluster.config.remedy import anywhere, ask, drop, inside, write
from ultracluster.model import Cluster
from ultracluster.model.addresses import vpc_blocks
from ultracluster.model.parent_zone import control_plane_zone
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS
from ultracluster.rules.sources import MOTO
from ultracluster.rules.zones import in_local_zone, not_a_zone_of, unknown_zone, with_zone_of_region

CREATE = "EKS API reference, CreateCluster"
VPC_GUIDE = "EKS User Guide, View Amazon EKS networking requirements for VPC and subnets"
_ZONE: YamlPath = ("second_zone_id",)
_SUBNETS: YamlPath = ("control_plane_subnet_ids",)
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


@EKS.error(2, f"{CREATE} (subnetIds); {VPC_GUIDE}")
def control_plane_zones(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """The control plane has subnets in two zones."""
    network = cluster.environment.network
    others = _other_zones(cluster.home, network, settings)
    if network.vpc is None:
        if settings.control_plane_subnet_ids:
            yield at(*_SUBNETS).breach(
                "these subnets cannot be used: they exist in another VPC than the one that is created.",
                drop(),
            )
        if settings.second_zone_id is None:
            yield at().breach(
                "EKS requires a second zone for the control plane. Nodes and file systems stay in "
                f"{network.zone_id}; two small subnets are created for the control plane's interfaces.",
                inside(second_zone_id=others[0])
                if others
                else ask("fact", "second_zone_id: another zone of the Region"),
            )
        elif settings.second_zone_id == (first := control_plane_zone(network)):
            of = "network.zone_id" if first == network.zone_id else "the first zone that EKS takes"
            yield at(*_ZONE).breach(
                f"`{first}` is {of}, too: EKS requires two different zones for the control plane.",
                write(*others) if others else ask("fact", "another zone of the Region"),
            )
        return
    if settings.second_zone_id:
        yield at(*_ZONE).breach(
            f"second_zone_id has no effect: no subnet is created for the control plane in {network.vpc.id}, "
            "which exists.",
            drop().noting("name existing subnets: control_plane_subnet_ids: [subnet-..., subnet-...]"),
        )
    if len(settings.control_plane_subnet_ids) < 2:
        yield at(*_SUBNETS if settings.control_plane_subnet_ids else ()).breach(
            f"{network.vpc.id} exists, and EKS requires subnets of it in two zones or more for the control "
            "plane, each with 6 free addresses (16 advised), and with a route to AWS for the function that "
            "applies charts.",
            ask("fact", "control_plane_subnet_ids: [subnet-..., subnet-...], private and in two zones"),
        )


@EKS.error(
    17,
    f"{VPC_GUIDE}: use1-az3, usw1-az2 and cac1-az3 are refused; Launch low-latency EKS clusters with "
    "AWS Local Zones",
    "2026-11-22",
)
def control_plane_zone_accepted(cluster: Cluster, settings: Eks | HyperPodEks, home: Region) -> Breaches:
    """EKS accepts subnets of the control plane in the zones."""
    network = cluster.environment.network
    if network.vpc is not None:
        return  # its subnets are where they are: preflight looks
    second: YamlPath = ("orchestrator", *_ZONE)
    first = control_plane_zone(network)  # that of the nodes, or of network.further_zones
    for path, zone in ((("network", "zone_id"), first), (second, settings.second_zone_id)):
        if not zone or not_a_zone_of(home, zone, path):
            continue
        if zone in refused_zones():
            why = f"EKS does not accept a subnet in {zone} for a control plane"
        elif (kind := zone_kind(zone)) in refused_kinds("EKS017"):
            why = f"{zone} is a {ZONE_WORDS[kind]}, where EKS accepts no subnet for a control plane"
        else:
            continue
        others = _other_zones(home, network, settings)
        nodes = path == ("network", "zone_id")
        elsewhere = write(*others) if others else ask("fact", "another zone of the Region")
        if nodes and in_local_zone(home, zone):
            elsewhere = with_zone_of_region(cluster, home)  # nodes stay; the control plane's subnets move
        yield at(*path).breach(
            f"{why}" + (", and one is created for it in the zone of the nodes." if nodes else "."),
            elsewhere.noting(
                "or keep nodes there, with another zone in network.further_zones or an existing network.vpc "
                "with control_plane_subnet_ids in two other zones"
                if nodes
                else ""
            ),
        )


@EKS.error(3, "EC2 User Guide, zone IDs")
def second_zone_in_region(settings: Eks | HyperPodEks, home: Region, network: Network) -> Breaches:
    """second_zone_id is a zone of the Region."""
    zone, avoid = settings.second_zone_id, {*refused_zones(), network.zone_id}
    if zone and (breach := not_a_zone_of(home, zone, _ZONE, avoid)):
        yield breach


@EKS.warning(
    4,
    f"{MOTO} ships it",
    by_hand="aws ec2 describe-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId]'",
)
def second_zone_known(settings: Eks | HyperPodEks, home: Region, network: Network) -> Breaches:
    """second_zone_id is among the zones seen in the Region."""
    zone, avoid = settings.second_zone_id, {*refused_zones(), network.zone_id}
    if zone and (breach := unknown_zone(home, zone, _ZONE, avoid)):
        yield breach


@EKS.error(5, "EKS API reference, KubernetesNetworkConfigRequest (serviceIpv4Cidr)")
def service_network(settings: Eks | HyperPodEks, network: Network) -> Breaches:
    """service_cidr is a private network of /12 to /24 outside the VPC."""
    text = settings.service_cidr
    if text is None:
        return
    services = IPv4Network(text)
    why = ""
    if not 12 <= services.prefixlen <= 24:
        why = f"a /{services.prefixlen} is outside EKS's range of /12 to /24."
    elif not any(services.subnet_of(private) for private in PRIVATE):
        why = "it is outside 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16."
    elif vpc := next((block for block in vpc_blocks(network) if services.overlaps(block)), None):
        why = f"it overlaps the VPC ({vpc}): pods could not distinguish a service from a host."
    if why:
        yield at("service_cidr").breach(f"{text}: {why}", write(free_service_network(network)))


@EKS.warning(6, "EKS User Guide, Cluster API server endpoint")
def public_endpoint_restricted(endpoint: PublicEndpoint) -> Breaches:
    """The Kubernetes API is not open to the internet."""
    for index, cidr in enumerate(endpoint.cidrs):
        network = IPv4Network(cidr)
        if network.prefixlen < 16 and (public := public_addresses(network)):
            yield at("cidrs", index).breach(
                f"{cidr} lets {public} addresses of the internet reach the Kubernetes API; only IAM "
                "protects it.",
                anywhere({("orchestrator", "endpoint"): {"kind": "private"}}).noting(
                    "or use the /32 of your VPN's exit"
                ),
            )


@EKS.warning(
    105,
    "EKS User Guide, Cluster API server endpoint; IANA IPv4 Special-Purpose Address Registry",
    "2026-11-28",
)
def public_client_networks(endpoint: PublicEndpoint) -> Breaches:
    """Networks that reach the public endpoint have public addresses."""
    some = any(public_addresses(IPv4Network(cidr)) for cidr in endpoint.cidrs)
    private = anywhere({("orchestrator", "endpoint"): {"kind": "private"}})
    for index, cidr in enumerate(endpoint.cidrs):
        network = IPv4Network(cidr)
        if public_addresses(network) == 0:
            kept = range_of(network)
            what = f" ({kept.use}, {kept.source})" if kept else ""
            yield at("cidrs", index).breach(
                f"no client has an address of {cidr}{what} at the public endpoint: it sees the public "
                "address of a NAT gateway or of a company's exit. This entry lets nobody in.",
                (drop() if some else private).noting(
                    "clients of the VPC and of connected networks reach the private endpoint in any case"
                ),
            )


def _other_zones(home: Region | None, network: Network, settings: Eks | HyperPodEks) -> list[str]:
    taken = (network.zone_id, control_plane_zone(network), settings.second_zone_id, *refused_zones())
    zones = home.zone_ids if home else ()
    return [zone for zone in zones if zone not in taken and home and not in_local_zone(home, zone)][:2]


def free_service_network(network: Network) -> str:
    """A network for services that is not the VPC's; of one that holds all of them, or is not known, EKS's
    usual one."""
    usual = ("172.20.0.0/16", "10.100.0.0/16", "192.168.128.0/17")
    taken = vpc_blocks(network)
    free = (cidr for cidr in usual if not any(map(IPv4Network(cidr).overlaps, taken)))
    return next(free, usual[0])
