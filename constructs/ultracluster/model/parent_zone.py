"""The zone of the Region that does for a Local Zone what that does not offer."""

from __future__ import annotations

from ultracluster.catalog import is_local_zone
from ultracluster.catalog.eks import refused_zones
from ultracluster.config.network import Network
from ultracluster.config.nodes import Role

ENTRANCES: frozenset[Role] = frozenset({"controller", "login", "system"})
"""Roles of nodes that may be in another zone than the accelerators: no EFA traffic reaches them."""


def parent_zone(network: Network) -> str | None:
    """The zone of NAT gateway and interface endpoints: the first of `further_zones` that is no Local Zone.

    It is the network's own zone where that is no Local Zone. None: a Local Zone with no such further zone.
    """
    if not is_local_zone(network.zone_id):
        return network.zone_id
    return next((zone for zone in network.further_zones if not is_local_zone(zone)), None)


def control_plane_zone(network: Network) -> str:
    """The zone of the first subnet of an EKS control plane in a VPC that is made.

    It is the nodes' own where EKS takes it, else the first of `further_zones` that EKS takes: nodes may be in
    a Local Zone, and the control plane's interfaces never are (EKS User Guide, "Launch low-latency EKS
    clusters with AWS Local Zones", 2026-10). The nodes' own where there is none, which EKS refuses.
    """
    zones = (network.zone_id, *network.further_zones)
    taken = (zone for zone in zones if not is_local_zone(zone) and zone not in refused_zones())
    return next(taken, network.zone_id)


def crosses_zones(network: Network) -> bool:
    """Return whether what nodes send out passes another zone first: EC2 bills traffic between zones."""
    return parent_zone(network) not in (None, network.zone_id)


def exports_homes_to_vpc(network: Network) -> bool:
    """Return whether home directories are exported to the whole VPC, not only to the node subnet.

    Head and login nodes of a Local Zone are in another subnet than the file system. Elsewhere the export is
    never widened: a change of it may replace the file system.
    """
    return is_local_zone(network.zone_id) and bool(network.further_zones)
