"""The zone of the Region that does for a Local Zone what that does not offer."""

from __future__ import annotations

from ultracluster.catalog import is_local_zone
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


def crosses_zones(network: Network) -> bool:
    """Return whether what nodes send out passes another zone first: EC2 bills traffic between zones."""
    return parent_zone(network) not in (None, network.zone_id)


def exports_homes_to_vpc(network: Network) -> bool:
    """Return whether home directories are exported to the whole VPC, not only to the node subnet.

    Head and login nodes of a Local Zone are in another subnet than the file system. Elsewhere the export is
    never widened: a change of it may replace the file system.
    """
    return is_local_zone(network.zone_id) and bool(network.further_zones)
