"""Rules on HyperPod, with Slurm and on EKS: groups in other zones than the cluster's (OverrideVpcConfig)."""

from __future__ import annotations

from ipaddress import IPv4Network

from ultracluster.catalog import Region, is_local_zone, offered_zone_ids
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import Remedy, anywhere, ask, beside, drop, rename, write
from ultracluster.model import TRAITS, Cluster, Group
from ultracluster.model.addresses import (
    LARGEST_PREFIX,
    SMALLEST_PREFIX,
    further_budgets,
    subnets,
)
from ultracluster.model.parent_zone import ENTRANCES, exports_homes_to_vpc
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import HYP
from ultracluster.rules.sources import MOTO
from ultracluster.rules.zones import free_range, not_a_zone_of, usual_zones, whole_network

ZONES = (
    "SageMaker Developer Guide, Setting up SageMaker HyperPod clusters across multiple AZs "
    "(sagemaker-hyperpod-prerequisites)"
)
DATE = "2026-11-23"
EVERY = frozenset(TRAITS)
"""Other orchestrators have further zones for the head, login and system nodes of a Local Zone."""


@HYP.error(70, f"{ZONES}; EC2 API reference, CreateSubnet: a subnet is in one zone", DATE, kinds=EVERY)
def zone_has_subnet(cluster: Cluster) -> Breaches:
    """A group's zone is one of the network's further zones."""
    network = cluster.environment.network
    for name, group in cluster.groups.items():
        zone, path = group.settings.zone_id, ("node_groups", name, "zone_id")
        if zone is None or zone in network.further_zones:
            continue
        if zone == network.zone_id:
            yield at(*path).breach(
                f"{zone} is the network's own zone, in which every group is by default.", drop()
            )
            continue
        free = free_range(cluster, 1)
        make: dict[YamlPath, object] = {("network", "further_zones", zone): {"cidr": str(free)}}
        yield at(*path).breach(
            f"there is no subnet in {zone}: "
            + ("HyperPod asks for one in OverrideVpcConfig." if group.in_service else "its nodes need one."),
            (anywhere(make) | drop()) if free and cluster.home and _fits(cluster.home, zone) else drop(),
        )


@HYP.error(71, f"{ZONES}; EC2 User Guide, zone IDs", DATE, kinds=EVERY)
def further_zone_of_region(network: Network, home: Region) -> Breaches:
    """Further zones are other zones of the Region."""
    for zone in network.further_zones:
        path = ("further_zones", zone)
        others = usual_zones(home, {network.zone_id, *network.further_zones})
        remedy = rename(others[0]) if others else drop()
        if zone == network.zone_id:
            yield Breach(path, f"{zone} is the zone of the network itself, which has its subnet.", remedy)
        elif breach := not_a_zone_of(home, zone, path):
            yield Breach(path, breach.message, remedy)


@HYP.error(72, "EC2 API reference, CreateSubnet", DATE, kinds=EVERY)
def further_subnets_fit(cluster: Cluster) -> Breaches:
    """The subnets of further zones lie in the VPC, beside the others."""
    network, cut = cluster.environment.network, subnets(cluster)
    whole = whole_network(network)
    taken = [cut.nodes, *cut.small]
    for zone, further in network.further_zones.items():
        asked = IPv4Network(further.cidr)
        path = ("network", "further_zones", zone, "cidr")
        if not LARGEST_PREFIX <= asked.prefixlen <= SMALLEST_PREFIX:
            why = f"{asked} is a /{asked.prefixlen}; EC2 makes subnets from /16 to /28."
        elif network.vpc and not asked.subnet_of(whole):
            why = f"{asked} is not part of the VPC's {whole}; EC2 refuses the subnet."
        elif clash := next((one for one in taken if one.overlaps(asked)), None):
            why = f"{asked} overlaps {clash}, another subnet of the environment; EC2 refuses it."
        else:
            taken.append(asked)
            continue
        yield Breach(path, why, _other_range(cluster, zone))


@HYP.error(
    73,
    "SageMaker Developer Guide, Prerequisites for using SageMaker HyperPod; EC2 API reference, CreateSubnet",
    DATE,
    kinds=EVERY,
)
def further_addresses(cluster: Cluster) -> Breaches:
    """The subnets of further zones have every address that AWS is certain to take."""
    for zone, budget in further_budgets(cluster).items():
        if budget.certain > budget.usable:
            yield at("network", "further_zones", zone, "cidr").breach(
                f"the groups in {zone} take {budget}; at least {budget.certain} of them are certain.",
                _other_range(cluster, zone),
            )


@HYP.warning(
    74,
    "SageMaker Developer Guide, Prerequisites for using SageMaker HyperPod: P5; others estimated",
    DATE,
    kinds=EVERY,
)
def further_addresses_likely(cluster: Cluster) -> Breaches:
    """The subnets of further zones have every address that their groups are likely to take."""
    for zone, budget in further_budgets(cluster).items():
        if budget.certain <= budget.usable < budget.total:
            yield at("network", "further_zones", zone, "cidr").breach(
                f"the groups in {zone} are likely to take {budget}; {budget.certain} are certain.",
                _other_range(cluster, zone),
            )


@HYP.error(
    75,
    f"{ZONES}: EFA traffic cannot cross zones",
    DATE,
    kinds=frozenset({"hyperpod-slurm"}),
    until_acknowledged=True,
)
def partition_in_one_zone(cluster: Cluster) -> Breaches:
    """All groups of a partition are in one zone."""
    for partition, groups in cluster.partitions.items():
        zones = {group.zone_id for group in groups.values()}
        for name, group in groups.items() if len(zones) > 1 else ():
            others = sorted(zones - {group.zone_id})
            if group.zone_id != cluster.environment.network.zone_id:
                yield at("node_groups", name, "zone_id").breach(
                    f"partition `{partition}` would have nodes in {' and '.join((*others, group.zone_id))}: "
                    "Slurm may give a job nodes of both, between which there is no EFA and the job does "
                    "not run.",
                    beside(partition=f"{name}-{group.zone_id}") | drop(),
                )


@HYP.error(
    76,
    f"{ZONES}: EFA traffic cannot cross zones",
    DATE,
    kinds=frozenset({"hyperpod-eks"}),
    until_acknowledged=True,
)
def jobs_in_one_zone(cluster: Cluster) -> Breaches:
    """No job of Kubernetes can be placed over two zones by mistake."""
    for name, group in cluster.in_service.items():
        if group.zone_id == cluster.environment.network.zone_id or group.settings.taints:
            continue
        others = [
            one
            for one in cluster.in_service.values()
            if one.zone_id != group.zone_id and not one.settings.taints and _makers(one) & _makers(group)
        ]
        if others:
            taint = {"key": "example.com/zone", "value": group.zone_id, "effect": "NoSchedule"}
            yield at("node_groups", name, "zone_id").breach(
                f"`{name}` in {group.zone_id} and `{others[0].name}` in {others[0].zone_id} have "
                "accelerators that "
                "pods ask for by the same name: the scheduler may spread a job over both, between which "
                "there "
                "is no EFA.",
                drop() if group.settings.deep_health_checks else beside(taints=[taint]) | drop(),
            )


@HYP.warning(
    77,
    f"{ZONES}, and Setting up SageMaker HyperPod with Amazon FSx for Lustre; FSx for Lustre User "
    "Guide, "
    "Working with EFA-enabled file systems (same zone)",
    DATE,
)
def storage_in_other_zone(cluster: Cluster) -> Breaches:
    """Groups in another zone than the file systems are there on purpose."""
    storage, home = cluster.environment.storage, cluster.environment.network.zone_id
    inside = is_local_zone(home)  # another rule asks for these nodes outside of a Local Zone
    there = [words for words, one in (("Lustre", storage.lustre), ("OpenZFS", storage.openzfs)) if one]
    for zone, groups in cluster.further_zones.items() if there else ():
        for name, group in groups.items():
            if group.in_service and not (inside and group.role in ENTRANCES):
                yield at("node_groups", name, "zone_id").breach(
                    f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} in {home}: nodes in "
                    f"{zone} reach it "
                    "over TCP only, with more latency, and AWS bills each GB between the zones, both ways.",
                    drop().noting("or acknowledge that its jobs read from S3, or seldom"),
                )


@HYP.error(
    78,
    "FSx for OpenZFS User Guide, NFS exports: client configurations; this package exports to the node subnet",
    DATE,
    until_acknowledged=True,
)
def homes_reach_zones(cluster: Cluster) -> Breaches:
    """Home directories can be mounted in every zone."""
    openzfs = cluster.environment.storage.openzfs
    if openzfs is None or openzfs.deployment == "existing":
        return
    if exports_homes_to_vpc(cluster.environment.network):
        return
    inside = subnets(cluster).nodes
    for zone, groups in cluster.further_zones.items():
        for name, group in groups.items():
            if group.in_service:
                yield at("node_groups", name, "zone_id").breach(
                    f"the home directories (OpenZFS) are exported to the node subnet {inside} only, for "
                    "good: nodes "
                    f"in {zone} cannot mount them.",
                    drop().noting("or an existing OpenZFS that admits both subnets"),
                )


@HYP.warning(
    79,
    f"{MOTO} and skypilot-catalog ship it, undated",
    DATE,
    by_hand="aws ec2 describe-instance-type-offerings --location-type availability-zone-id "
    "--filters Name=instance-type,Values=<type> --query 'InstanceTypeOfferings[].Location'",
)
def zone_offers_types(group: Group, cluster: Cluster, home: Region) -> Breaches:
    """The zone of a group offers its instance types."""
    zone = group.settings.zone_id
    if zone is None or not group.in_service:
        return
    for number, kind in enumerate(group.types):
        zones = offered_zone_ids(kind.name, home.name) if kind and not kind.declared else ()
        if kind and zones and zone not in zones:
            near = [one for one in zones if one in cluster.environment.network.further_zones]
            fix = write(near[0]) if near else drop() if cluster.environment.network.zone_id in zones else None
            yield at("zone_id").breach(
                f"{kind.name} was seen in {', '.join(zones)}, not in {zone}"
                + (" (it is a further type of the group)." if number else ": the group may wait forever."),
                fix or ask("decision", f"a zone of {', '.join(zones)}"),
            )


def _makers(group: Group) -> set[str]:
    """Who made the accelerators of a group: the name by which pods ask for them."""
    return {kind.accelerator.manufacturer for kind in group.known_types if kind.accelerator}


def _fits(home: Region, zone: str) -> bool:
    return not_a_zone_of(home, zone, ()) is None


def _other_range(cluster: Cluster, zone: str) -> Remedy:
    free = free_range(cluster, further_budgets(cluster)[zone].total, without=zone)
    whole = whole_network(cluster.environment.network)
    return write(str(free)) if free else ask("fact", f"a free network within {whole}")
