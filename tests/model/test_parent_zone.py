"""The zone of the Region behind a Local Zone, in every environment that is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import ROOT

from ultracluster.catalog import is_local_zone
from ultracluster.config import load
from ultracluster.config.network import FurtherZone, Network
from ultracluster.model import resolve
from ultracluster.model.parent_zone import ENTRANCES, crosses_zones, parent_zone

FILES = sorted((ROOT / "environments").glob("*.yaml")) + sorted((ROOT / "environments/wishes").glob("*.yaml"))
SUBNET = FurtherZone(cidr="10.0.128.0/20")


def test_the_first_zone_of_the_region_is_the_parent() -> None:
    local, other = "use1-dfw2-az1", "use1-atl2-az1"
    assert parent_zone(Network(zone_id="use1-az6")) == "use1-az6"
    assert parent_zone(Network(zone_id=local)) is None
    assert parent_zone(Network(zone_id=local, further_zones={other: SUBNET})) is None
    both = Network(zone_id=local, further_zones={other: SUBNET, "use1-az4": SUBNET})
    assert parent_zone(both) == "use1-az4" and crosses_zones(both)
    assert not crosses_zones(Network(zone_id="use1-az6", further_zones={"use1-az4": SUBNET}))
    assert not crosses_zones(Network(zone_id=local))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_shipped_environment_needs_what_a_local_zone_lacks(file: Path) -> None:
    cluster = resolve(load(file).environment)
    network = cluster.environment.network
    if is_local_zone(network.zone_id) and network.vpc is None:
        assert parent_zone(network), "its NAT gateway would be in the Local Zone"
    entrances = [group for group in cluster.groups.values() if group.role in ENTRANCES]
    assert not [group.name for group in entrances if is_local_zone(group.zone_id)]
