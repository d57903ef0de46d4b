"""Zones of a Region: what an id says, and which are advised."""

from __future__ import annotations

import re
from collections.abc import Container
from ipaddress import IPv4Network

from ultracluster.catalog import Region, connected_zone, zone_region
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import Remedy, anywhere, ask, write
from ultracluster.model import Cluster
from ultracluster.model.addresses import LARGEST_PREFIX, SMALLEST_PREFIX, subnets, usable_addresses
from ultracluster.rules.engine import Breach, at

FILLED = 0.8
"""Share of a subnet that the advised one is filled to at the most."""


def not_a_zone_of(home: Region, zone_id: str, path: YamlPath, avoid: Container[str] = ()) -> Breach | None:
    """The breach at `path` if `zone_id` cannot be a zone of `home`; no zone of `avoid` is advised."""
    zones = usual_zones(home, avoid)
    found = zone_region(zone_id)
    if found and zone_id.startswith(found.name):
        return at(*path).breach(
            f"`{zone_id}` is the name of a zone, not its id. AWS gives zones other names in each account; "
            "reservations and training plans are matched by the zone's id.",
            ask("fact", f"the id that this account has for it, one of {', '.join(zones) or 'its zones'}"),
        )
    if found and found.name != home.name:
        return at(*path).breach(
            f"`{zone_id}` is a zone of {found.name}, and the environment is in {home.name}: a "
            "subnet cannot be made there.",
            advised_zone(home, avoid).noting(f"or region: {found.name}"),
        )
    if not found and home.zone_prefix:
        return at(*path).breach(
            f"`{zone_id}` does not have the form of a zone id of {home.name}.", advised_zone(home, avoid)
        )
    return None


def unknown_zone(home: Region, zone_id: str, path: YamlPath, avoid: Container[str] = ()) -> Breach | None:
    """The breach at `path` if `zone_id` has the form of a zone of `home` but has never been seen there."""
    if not home.zone_ids or zone_id in home.zone_ids:
        return None
    if not_a_zone_of(home, zone_id, path) or in_local_zone(home, zone_id):
        return None
    return at(*path).breach(
        f"`{zone_id}` is not among the zones seen in {home.name}. If this account does not have "
        "it, the subnet cannot be made.",
        advised_zone(home, avoid),
    )


def in_local_zone(home: Region, zone_id: str) -> bool:
    """Return whether a zone of `home` is a Local Zone or a Wavelength Zone, by the form of its id."""
    mine = bool(home.zone_prefix) and zone_id.startswith(f"{home.zone_prefix}-")
    return mine and not re.fullmatch(rf"{home.zone_prefix}-az\d+", zone_id)


def usual_zones(home: Region, avoid: Container[str] = ()) -> list[str]:
    """The zones seen in the Region, without Local and Wavelength Zones and those to avoid."""
    return [zone for zone in home.zone_ids if zone not in avoid and not in_local_zone(home, zone)]


def zone_behind(home: Region, local_zone_id: str, avoid: Container[str] = ()) -> str | None:
    """The zone of the Region for what a Local Zone may not have: the one that it is connected to, if known.

    None where no zone of the Region is known that is not among those to avoid.
    """
    near = connected_zone(local_zone_id)
    return near if near and near not in avoid else next(iter(usual_zones(home, avoid)), None)


def advised_zone(home: Region, avoid: Container[str] = ()) -> Remedy:
    """Another zone of the Region in the place of the finding."""
    zones = usual_zones(home, avoid)
    return write(*zones) if zones else ask("fact", f"{home.zone_prefix or '<prefix>'}-az1, -az2 ...")


def whole_network(network: Network) -> IPv4Network:
    """The VPC of an environment."""
    return IPv4Network(network.vpc.cidr if network.vpc else network.cidr)


def free_range(cluster: Cluster, addresses: int, *, without: str = "") -> IPv4Network | None:
    """The largest part of the VPC, up to a quarter, that nothing else of the environment takes.

    Args:
        addresses: that must fit.
        without: a zone whose subnet moves.
    """
    network, cut = cluster.environment.network, subnets(cluster)
    whole = whole_network(network)
    if whole.prefixlen < LARGEST_PREFIX:
        return None  # no VPC is so large: nobody has said which one it is
    further = [IPv4Network(one.cidr) for zone, one in network.further_zones.items() if zone != without]
    for prefix in range(max(LARGEST_PREFIX, whole.prefixlen + 2), SMALLEST_PREFIX + 1):
        if addresses > FILLED * usable_addresses(prefix):
            return None
        for part in whole.subnets(new_prefix=prefix):
            if not any(part.overlaps(one) for one in (cut.nodes, *cut.small, *further)):
                return part
    return None


def with_zone_of_region(cluster: Cluster, home: Region) -> Remedy:
    """A zone of the Region beside a Local Zone."""
    new = new_zone_of_region(cluster, home)
    return anywhere(new) if new else ask("fact", "network.further_zones with a zone of the Region")


def new_zone_of_region(cluster: Cluster, home: Region) -> dict[YamlPath, object]:
    """The change that adds a zone of the Region; empty where none is known, or the VPC has no free range."""
    network = cluster.environment.network
    zone = zone_behind(home, network.zone_id, {network.zone_id, *network.further_zones})
    free = free_range(cluster, 16)
    if zone is None or free is None:
        return {}
    return {("network", "further_zones", zone): {"cidr": str(free)}}
