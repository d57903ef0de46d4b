"""Prices and their age; zones that offer a type."""

import csv
import datetime as dt

import pytest

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import (
    Price,
    instance_types,
    offered_zone_ids,
    price,
    region,
    ultraservers,
    zone_region,
)

with (authorities.CATALOG / "prices.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))


def known(found: Price | None) -> Price:
    assert found is not None
    return found


def test_a_dated_price_holds_for_90_days() -> None:
    day = dt.date(2026, 10, 18)
    last = known(price("p5.48xlarge", "us-east-1", today=day))
    assert (last.usd_per_hour, last.date, last.expires) == (55.04, dt.date(2026, 7, 20), day)
    assert (last.expired, last.indicative, last.verified) == (False, False, True)
    assert "karpenter" in last.source
    after = known(price("p5.48xlarge", "us-east-1", today=day + dt.timedelta(days=1)))
    assert after.expired


def test_an_undated_price_is_indicative_and_never_summed() -> None:
    tokyo = known(price("p4d.24xlarge", "ap-northeast-1", today=dt.date(2000, 1, 1)))
    assert tokyo.indicative
    assert tokyo.expired
    assert (tokyo.date, tokyo.expires) == (None, None)
    assert "skypilot" in tokyo.source


def test_a_capacity_block_price_ends_with_the_announced_change() -> None:
    before = known(price("p5.48xlarge", "us-east-1", purchase="capacity-block", today=dt.date(2026, 10, 6)))
    assert (before.usd_per_hour, before.expires) == (41.528, dt.date(2026, 10, 6))
    assert (before.expired, before.verified) == (False, True)
    after = known(price("p5.48xlarge", "us-east-1", purchase="capacity-block", today=dt.date(2026, 10, 7)))
    assert (after.usd_per_hour, after.expires) == (47.76, dt.date(2027, 1, 5))
    assert (after.expired, after.verified) == (False, False)
    assert "unverified" in after.source


def test_a_capacity_block_price_without_successor_expires_too() -> None:
    found = known(price("p5.4xlarge", "us-east-1", purchase="capacity-block", today=dt.date(2026, 10, 7)))
    assert (found.usd_per_hour, found.expired, found.verified) == (5.191, True, True)


def test_no_figure_is_not_a_price_of_nothing() -> None:
    assert price("p5e.48xlarge", "us-east-1") is None
    assert price("g6.48xlarge", "us-east-1", purchase="capacity-block") is None
    assert price("p5.48xlarge", "mars-1") is None
    assert price("m5.large", "us-east-1") is None


def test_an_ultraserver_has_its_price_in_its_local_zone() -> None:
    found = known(price("u-p6e-gb200x72", "us-east-1-dfw-2a", purchase="capacity-block", today=dt.date.min))
    assert found.usd_per_hour == 761.904


def test_today_is_the_default() -> None:
    assert known(price("p5.48xlarge", "us-east-1")).expired == (dt.date.today() > dt.date(2026, 10, 18))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['instance_type']} {r['region_or_zone']}")
def test_every_figure_names_source_and_date(row: dict[str, str]) -> None:
    name, place = row["instance_type"], row["region_or_zone"]
    assert name in {*instance_types(), *ultraservers()}
    assert region(place) or zone_region(place)
    assert bool(row["on_demand_usd_hr"]) == bool(row["od_source"]) == bool(row["od_date"])
    assert bool(row["capacity_block_usd_hr"]) == bool(row["cb_source"]) == bool(row["cb_date"])
    assert bool(row["az_ids"]) == bool(row["az_source"])
    for purchase in ("on-demand", "capacity-block"):
        found = price(name, place, purchase=purchase)
        if found:
            assert found.source
            assert found.usd_per_hour > 0


def test_no_row_stands_twice() -> None:
    keys = [(row["instance_type"], row["region_or_zone"]) for row in ROWS]
    assert len(keys) == len(set(keys))


def test_zones_that_offer_a_type() -> None:
    assert offered_zone_ids("p4d.24xlarge", "ap-northeast-1") == ("apne1-az1", "apne1-az4")
    assert offered_zone_ids("m5.large", "us-east-1") == ()
    assert offered_zone_ids("p5.48xlarge", "mars-1") == ()


def test_a_zone_lies_in_its_region() -> None:
    for row in ROWS:
        for zone in offered_zone_ids(row["instance_type"], row["region_or_zone"]):
            found = zone_region(zone)
            assert found is not None
            assert found.name == row["region_or_zone"]
