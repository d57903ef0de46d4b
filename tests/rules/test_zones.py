"""Zone ids of a Region: which cannot be there, which were never seen, and which are advised instead."""

from __future__ import annotations

import pytest

from ultracluster.catalog import Region, region
from ultracluster.rules.zones import in_local_zone, not_a_zone_of, unknown_zone, usual_zones


@pytest.fixture
def ohio() -> Region:
    found = region("us-east-2")
    assert found
    return found


@pytest.mark.parametrize(
    ("zone_id", "says"),
    [
        ("us-east-2a", "is the name of a zone, not its id"),
        ("use1-az2", "is a zone of us-east-1"),
        ("somewhere", "does not have the form of a zone id"),
        ("use2-az1", None),
        ("use2-az9", None),
    ],
)
def test_ids_that_cannot_be_of_the_region(ohio: Region, zone_id: str, says: str | None) -> None:
    breach = not_a_zone_of(ohio, zone_id, ("network", "zone_id"))
    assert (says is None) is (breach is None)
    assert breach is None or (says and says in breach.message)


def test_only_an_id_of_the_right_form_that_was_never_seen_is_unknown(ohio: Region) -> None:
    known = {zone: unknown_zone(ohio, zone, ()) is None for zone in ("use2-az1", "use2-az9", "use1-az1")}
    assert known == {"use2-az1": True, "use2-az9": False, "use1-az1": True}


def test_advice_leaves_out_local_zones_and_those_to_avoid(ohio: Region) -> None:
    virginia = region("us-east-1")
    assert virginia and in_local_zone(virginia, "use1-dfw2-az1") and not in_local_zone(virginia, "use1-az1")
    assert usual_zones(ohio, {"use2-az1"}) == ["use2-az2", "use2-az3"]
