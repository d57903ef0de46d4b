"""The tables of list prices: sources, places, and no figure twice."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from cost_support import TODAY
from project import ROOT

from ultracluster.catalog.prices import figure

FILE = ROOT / "constructs/ultracluster/catalog/service_prices.json"
CSV = FILE.with_name("prices.csv")
TABLES: list[dict[str, Any]] = json.loads(FILE.read_text())["tables"]


# The table itself.


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table['region']} {next(iter(table['usd']))}")
def test_every_figure_has_a_source(table: dict[str, Any]) -> None:
    assert len(table["source"]) > 10
    assert table["unit"] in ("hour", "day", "month", "gb")
    assert table["date"] is None or dt.date.fromisoformat(table["date"]) <= TODAY
    assert isinstance(table["verified"], bool)
    assert all(usd > 0 for usd in table["usd"].values())
    for key, usd in table["usd"].items():
        found = figure(key, table["region"] or "us-east-2", today=TODAY)
        assert found is not None
        assert (found.usd, found.date is None) == (usd, table["date"] is None)


@pytest.mark.parametrize("place", ["us-east-1", "us-east-2", "us-west-2", "eu-west-1"])
def test_file_systems_are_known_where_clusters_stand(place: str) -> None:
    lustre = [f"lustre.persistent-2-ssd.{tier}" for tier in (125, 250, 500, 1000)]
    found = [figure(key, place, today=TODAY) for key in (*lustre, "openzfs.single-az-ha-2.throughput")]

    assert all(one is not None and one.date and one.region == place for one in found)
    costs = [one.usd for one in found[:4] if one]
    assert costs == sorted(costs)


def test_no_figure_stands_twice() -> None:
    keys = [(key, table["region"]) for table in TABLES for key in table["usd"]]

    assert len(keys) == len(set(keys))
    # what prices.csv has is not repeated
    accelerated = {row.partition(",")[0] for row in CSV.read_text().splitlines()}
    assert not [key for key, _ in keys if key.startswith("ec2.") and key[4:] in accelerated]
