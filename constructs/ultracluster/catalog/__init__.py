"""What AWS offers: instance types, UltraServers, Regions, prices, each with source and date.

Data files next to this module and their look-ups; nothing here but the standard library.
"""

from ultracluster.catalog.gpu_names import nearest_instance_types
from ultracluster.catalog.instance_facts import Accelerator, InstanceType, NetworkCards, UltraServer
from ultracluster.catalog.instances import (
    instance_type,
    instance_types,
    ultraserver,
    ultraservers,
)
from ultracluster.catalog.prices import Figure, figure, offered_zone_ids
from ultracluster.catalog.regions import (
    Region,
    border_group,
    connected_zone,
    is_local_zone,
    nearest_regions,
    region,
    regions,
    zone_region,
)

__all__ = [
    "Accelerator",
    "Figure",
    "InstanceType",
    "NetworkCards",
    "Region",
    "UltraServer",
    "border_group",
    "connected_zone",
    "figure",
    "instance_type",
    "instance_types",
    "is_local_zone",
    "nearest_instance_types",
    "nearest_regions",
    "offered_zone_ids",
    "region",
    "regions",
    "ultraserver",
    "ultraservers",
    "zone_region",
]
