"""AWS Regions and the zones in them.

`regions.json` is written by `tools/catalog_from_authorities.py`; its header names source and date.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.files import catalog_file, record

# What follows the Region's prefix or name: use1-az1, use1-atl2-az1, use1-wl1-bos-wlz1 ...
_ZONE_ID_REST = re.compile(r"(-[a-z0-9]+)*-(az|wlz)\d+")
_LOCAL_ZONE_ID = re.compile(r"-(?P<city>[a-z]+)(?P<number>\d+)-az\d+")
# ... and us-east-1a, us-east-1-dfw-2a, us-east-1-wl1-bos-wlz-1.
_ZONE_NAME_REST = re.compile(r"[a-z]|-[a-z]+-\d+[a-z]|-wl\d+-[a-z]+-wlz-\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One AWS Region. None means unknown, never "no".

    Source: botocore's partitions, cfn-lint's provider schemas, EC2's offerings as moto ships them.
    """

    name: str
    """As AWS writes it: "us-east-1"."""
    partition: str
    """Of its ARNs: "aws", "aws-us-gov", "aws-cn" ..."""
    dns_suffix: str
    """Ends the Region's service addresses: "amazonaws.com"."""
    zone_prefix: str | None
    """Begins the Region's zone ids: "use1". None where AWS documents no form for it."""
    zone_ids: tuple[str, ...]
    """Zone ids seen to offer instances, Local Zones included. A missing one proves nothing."""
    zone_lacks: Mapping[str, tuple[str, ...]]
    """Zone id -> families of types that other zones of the Region were seen to offer, and it not."""
    hyperpod: bool | None
    """CloudFormation has AWS::SageMaker::Cluster here."""
    fsx: bool | None
    """CloudFormation has AWS::FSx::FileSystem here."""
    pcs: bool | None
    """CloudFormation has AWS::PCS::Cluster here."""
    budgets: bool | None
    """CloudFormation has AWS::Budgets::Budget here."""
    prometheus: bool | None
    """Amazon Managed Service for Prometheus is here."""
    grafana: bool | None
    """Amazon Managed Grafana is here."""


@cache
def regions() -> Mapping[str, Region]:
    """Every Region known to botocore by name; read-only."""
    rows = catalog_file("regions")["regions"]
    return MappingProxyType({name: record(Region, row, name=name) for name, row in rows.items()})


def region(name: str) -> Region | None:
    """The Region called `name`, or None if the catalogue does not know it."""
    return regions().get(name)


def nearest_regions(name: str, *, count: int = 3) -> list[str]:
    """Up to `count` Region names like `name`, best first."""
    return nearest(name.strip().lower(), regions(), "", count)


def is_local_zone(zone_id: str) -> bool:
    """Whether it is the id of a Local or Wavelength Zone: use1-dfw2-az1, not use1-az1."""
    return re.fullmatch(r"[a-z0-9]+-az\d+", zone_id) is None


def border_group(zone_id: str) -> str | None:
    """The network border group of a Local Zone's public addresses: us-east-1-dfw-2 of use1-dfw2-az1.

    None for a zone of the Region itself, a Wavelength Zone, and a zone of no known Region.
    Source: EC2 API reference, CreateNatGateway and AllocateAddress; names of zone groups, 2026-11-27.
    """
    found = zone_region(zone_id)
    local = _LOCAL_ZONE_ID.fullmatch(zone_id, len(found.zone_prefix)) if found and found.zone_prefix else None
    return f"{found.name}-{local['city']}-{local['number']}" if found and local else None


def connected_zone(local_zone_id: str) -> str | None:
    """The zone of the Region that a Local Zone is connected to: use1-az4 of use1-dfw2-az1.

    None where it is not known. Source: AWS Local Zones User Guide, Available Local Zones.
    """
    return catalog_file("local_zones")["parent_zones"].get(local_zone_id)


def zone_region(zone_id: str) -> Region | None:
    """The Region of a zone, or None if no known Region has such zones.

    Takes zone ids ("use1-az1"), Local and Wavelength Zones among them ("use1-atl2-az1"), and zone
    names ("us-east-1a", "us-east-1-dfw-2a"). Looks only at the form: the zone need not exist.
    """
    for candidate in regions().values():
        prefix, name = candidate.zone_prefix, candidate.name
        if prefix and zone_id.startswith(prefix) and _ZONE_ID_REST.fullmatch(zone_id, len(prefix)):
            return candidate
        if zone_id.startswith(name) and _ZONE_NAME_REST.fullmatch(zone_id, len(name)):
            return candidate
    return None
