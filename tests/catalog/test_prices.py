"""Prices and their age; zones that offer a type."""

import csv
import datetime as dt
import json
import re

import pytest
from rows import for_each

from tools import catalog_from_authorities as authorities
from ultracluster.catalog import (
    Figure,
    figure,
    instance_types,
    offered_zone_ids,
    region,
    ultraservers,
    zone_region,
)
from ultracluster.catalog.eks_calendar import standard_support_ends
from ultracluster.catalog.prices import derived_figure, price_kinds

with (authorities.CATALOG / "prices.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))
DOCUMENT = json.loads((authorities.CATALOG / "service_prices.json").read_text())
TODAY = dt.date(2026, 11, 22)


def known(found: Figure | None) -> Figure:
    assert found is not None
    return found


def made_up(key: str, region: str, usd: float) -> Figure:
    return Figure(key=key, region=region, usd=usd, unit="hour", source="this test", date=TODAY, verified=True)


def test_a_price_is_old_after_90_days() -> None:
    found = known(figure("ec2.p5.48xlarge", "us-east-1"))

    assert (found.usd, found.date, found.verified) == (55.04, dt.date(2026, 9, 1), True)
    assert "karpenter" in found.source
    assert not found.old(dt.date(2026, 11, 30))
    assert found.old(dt.date(2026, 12, 1))


def test_ec2_prices_have_dates_outside_us_east_1_too() -> None:
    assert not [row for row in ROWS if row["od_date"] == "undated"]
    for place in ("us-east-2", "us-west-2", "eu-north-1"):
        assert known(figure("ec2.p5en.48xlarge", "us-east-2")).date == dt.date(2026, 1, 21)
        assert known(figure("ec2.p5.48xlarge", place)).date


def test_an_undated_price_is_never_called_old_or_young() -> None:
    found = known(figure("training-plan.p5.48xlarge", "us-east-2"))

    assert (found.date, found.old(dt.date(2030, 1, 1))) == (None, False)


def test_a_capacity_block_has_the_announced_price_from_its_day_on() -> None:
    before = known(figure("capacity-block.p5.48xlarge", "us-east-1", today=dt.date(2026, 10, 6)))
    assert (before.usd, before.date, before.verified) == (41.528, dt.date(2026, 7, 22), True)
    after = known(figure("capacity-block.p5.48xlarge", "us-east-1", today=dt.date(2026, 10, 7)))
    assert (after.usd, after.date, after.verified) == (47.76, dt.date(2026, 10, 7), False)
    assert "announced" in after.source
    abroad = [
        known(figure("capacity-block.p5.48xlarge", "eu-north-1", today=day)).usd
        for day in (dt.date(2026, 10, 6), dt.date(2026, 10, 7))
    ]
    assert abroad == [37.76, 47.76]  # the discount outside the United States ends


def test_a_capacity_block_that_the_announcement_leaves_out_is_unchanged() -> None:
    found = known(figure("capacity-block.trn2.48xlarge", "us-east-2", today=TODAY))

    assert (found.usd, found.date, found.old(TODAY)) == (35.7608, dt.date(2026, 10, 7), False)


def test_a_capacity_block_of_which_the_announcement_is_unclear_is_old_from_that_day_on() -> None:
    day = dt.date(2026, 10, 7)
    found = known(figure("capacity-block.p5.4xlarge", "us-east-1", today=day))

    assert (found.usd, found.overtaken, found.old(day)) == (5.191, True, True)
    assert "before other prices of 2026-10-07" in found.source


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("ec2.p5e.48xlarge", "us-east-1"),
        ("capacity-block.g6.48xlarge", "us-east-1"),
        ("ec2.p5.48xlarge", "mars-1"),
        ("hyperpod-volume", "us-east-1"),
        ("", "us-east-1"),
        ("nonsense", ""),
    ],
)
def test_no_figure_is_not_a_price_of_nothing(key: str, place: str) -> None:
    assert figure(key, place) is None
    assert derived_figure(key, place) is None


def test_an_ultraserver_has_its_price_in_its_local_zone() -> None:
    found = known(figure("capacity-block.u-p6e-gb200x72", "us-east-1-dfw-2a", today=dt.date(2026, 7, 22)))
    assert found.usd == 761.904


def test_a_price_of_the_team_wins_there_and_nowhere_else() -> None:
    own = {("ec2.p5.48xlarge", "us-east-1"): made_up("ec2.p5.48xlarge", "us-east-1", 40.0)}

    assert known(figure("ec2.p5.48xlarge", "us-east-1", own=own)).usd == 40.0
    assert known(figure("ec2.p5.48xlarge", "us-west-2", own=own)).usd == 55.04
    # what follows from it follows from the team's
    assert known(derived_figure("hyperpod.p5.48xlarge", "us-east-1", own=own)).usd == pytest.approx(48)


# What follows from other prices.


HYPERPOD = {
    key.removeprefix("hyperpod."): usd
    for table in DOCUMENT["tables"]
    if table["region"] == "us-east-1"
    for key, usd in table["usd"].items()
    if key.startswith("hyperpod.")
}


COMPARED = [name for name in HYPERPOD if figure(f"ec2.{name}", "us-east-1")]


@for_each("name", COMPARED)
def test_the_factor_of_the_family_gives_the_price_of_hyperpod_s_list(name: str) -> None:
    derived = known(derived_figure(f"hyperpod.{name}", "us-east-1"))

    listed = known(figure(f"hyperpod.{name}", "us-east-1")).usd
    digits = len(repr(listed).partition(".")[2])  # the list rounds most of them
    assert derived.usd == pytest.approx(listed, abs=10**-digits, rel=0.004)


def test_the_whole_list_of_hyperpod_is_there() -> None:
    assert len(HYPERPOD) == 103  # 102 of 2026-09-16, and p5en
    assert HYPERPOD.keys() == {*COMPARED}  # of all of them EC2 has a price
    assert HYPERPOD["trn1.32xlarge"] == 24.73
    assert HYPERPOD["g5.xlarge"] == 1.408


@pytest.mark.parametrize(
    ("key", "place", "usd"),
    [
        ("hyperpod.p4d.24xlarge", "us-west-2", 25.91001756),  # the price list itself says so, on 2026-10-01
        ("hyperpod.p6-b200.48xlarge", "us-east-1", 136.71936),
        ("hyperpod.p5.4xlarge", "us-east-1", 8.256),
        ("training-plan.p6-b200.48xlarge", "us-east-2", 1.102 * 113.664),
        ("spot.p5.48xlarge", "us-east-1", 55.04),
        ("hyperpod-spot.g6e.12xlarge", "us-east-1", 13.12),
        ("rds.mysql-multi-az.m7g.large", "us-west-2", 0.336),
    ],
)
def test_what_follows_from_another_price(key: str, place: str, usd: float) -> None:
    found = known(derived_figure(key, place, today=TODAY))

    assert (found.key, found.region, found.verified) == (key, place, False)
    assert found.usd == pytest.approx(usd, rel=1e-6)
    assert " of " in found.source


def test_plans_of_all_types_stand_in_one_relation_to_capacity_blocks() -> None:
    before = dt.date(2026, 10, 6)
    for name in ("p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge"):
        plan = known(figure(f"training-plan.{name}", "us-east-1")).per_hour
        block = known(figure(f"capacity-block.{name}", "us-east-1", today=before)).per_hour
        assert plan / block == pytest.approx(1.102, abs=0.0005)


@pytest.mark.parametrize("kind", ["ec2", "hyperpod", "spot", "hyperpod-spot"])
def test_every_type_has_a_price_but_those_that_are_not_sold_on_demand(kind: str) -> None:
    announced = {name for name, one in instance_types().items() if one.announced}  # in one Region at first
    places = {
        row["instance_type"]: row["region_or_zone"] for row in ROWS if row["instance_type"] in announced
    }
    without = {
        name
        for name in instance_types()
        for place in [places.get(name, "us-east-1")]
        if not (figure(f"{kind}.{name}", place) or derived_figure(f"{kind}.{name}", place))
    }

    assert without == {
        "p5e.48xlarge", "p6e-gb200.36xlarge", "trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge",
    }  # fmt: skip


def test_every_kind_that_a_rule_names_is_one() -> None:
    for rule in DOCUMENT["derived"]:
        assert {rule["key"].partition(".")[0], rule["from"].partition(".")[0]} <= price_kinds()
        assert re.compile(rule.get("types", "")) and len(rule["source"]) > 10


# The tables themselves.


@for_each("row", ROWS, ids=lambda r: f"{r['instance_type']} {r['region_or_zone']}")
def test_every_figure_names_source_and_date(row: dict[str, str]) -> None:
    name, place = row["instance_type"], row["region_or_zone"]
    assert name in {*instance_types(), *ultraservers()}
    assert region(place) or zone_region(place)
    assert bool(row["on_demand_usd_hr"]) == bool(row["od_source"]) == bool(row["od_date"])
    assert bool(row["capacity_block_usd_hr"]) == bool(row["cb_source"]) == bool(row["cb_date"])
    assert bool(row["az_ids"]) == bool(row["az_source"])
    on_demand = figure(f"ec2.{name}", place)
    for kind in ("ec2", "reserved-1y", "capacity-block"):
        found = figure(f"{kind}.{name}", place)
        if found:
            assert found.source
            assert found.date
            assert found.usd > 0
    committed = figure(f"reserved-1y.{name}", place)
    if committed:
        assert on_demand is not None
        assert 0.3 < committed.usd / on_demand.usd < 1


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


def test_extended_support_begins_on_the_day_of_the_calendar() -> None:
    assert standard_support_ends("1.34") == dt.date(2026, 12, 2)
    assert standard_support_ends("1.99") is None
