"""List prices with their source and age, and the zones that offer a type.

`prices.csv` holds EC2's (Linux, shared tenancy) and Capacity Blocks', `service_prices.json` HyperPod's and
everything else that a cluster is billed for. Prices that a team asked for itself go before both.
"""

import csv
import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from ultracluster.catalog.files import catalog_file

_document = partial(catalog_file, "service_prices")

PriceUnit = Literal["hour", "day", "month", "gb"]
UNITS: tuple[PriceUnit, ...] = get_args(PriceUnit)

YOUNG = dt.timedelta(days=90)
"""Up to this age a figure counts as the price of today; an older one is marked."""

REFERENCE_REGIONS = ("us-east-1", "us-west-2")
"""Where a price is looked for when the environment's Region has none."""

HOURS_PER_MONTH = 730
"""Hours of the month that AWS's own calculator and bills by the GB-month count with: 8760 / 12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One price of one thing. Show its source and age with it."""

    key: str
    """What is sold: `ec2.TYPE`, `hyperpod.TYPE`, `nat`, `lustre.persistent-2-ssd.125`."""
    region: str
    """Region, Local Zone or, for Spot, zone id of the figure, where its source has one."""
    usd: float
    unit: PriceUnit
    """What `usd` buys: one of the things for an hour, a day or a month, or one GB of data."""
    source: str
    date: dt.date | None
    """Day of the figure, if it is dated."""
    verified: bool
    """False where it rests on a single source that is not the price list itself."""
    overtaken: bool = False
    """AWS has announced other prices since, and none is known for this."""
    live: bool = False
    """Asked of AWS just now."""

    @property
    def per_hour(self) -> float:
        """USD for one of the things for an hour; 0 for what is paid by the GB."""
        return {"hour": self.usd, "day": self.usd / 24, "month": self.usd / HOURS_PER_MONTH, "gb": 0.0}[
            self.unit
        ]

    def old(self, today: dt.date) -> bool:
        """Dated, and past the age up to which it counts as today's price."""
        return self.date is not None and (self.overtaken or today - self.date > YOUNG)


Own = Mapping[tuple[str, str], Figure]
"""Figures that win over the tables, by key and place."""


def figure(key: str, region: str, *, today: dt.date | None = None, own: Own | None = None) -> Figure | None:
    """The price of what `key` names in a Region or Local Zone; None where none is known (never "not sold").

    Args:
        key: as `service_prices.json` describes it.
        today: decides which of several announced prices it is.
        own: figures that win over the tables.
    """
    if own and (hit := own.get((key, region))):
        return hit
    on = today or dt.date.today()
    found = _figures().get((key, region)) or _figures().get((key, "")) or ()
    in_force = [one for since, one in found if since <= on]
    if not in_force:
        return None
    blocks = _document()["capacity_blocks"]
    change = dt.date.fromisoformat(blocks["from"])
    newest = in_force[-1]
    if key.startswith("capacity-block.") and newest.date and newest.date < change <= on:
        return replace(newest, overtaken=True, source=f"{newest.source}; before other prices of {change}")
    return newest


def derived_figure(
    key: str, region: str, *, today: dt.date | None = None, own: Own | None = None
) -> Figure | None:
    """A figure that follows from that of another thing in the same place; None where none follows.

    HyperPod's price is EC2's times the factor of the family, a training plan's a Capacity Block's times one;
    a database in two zones costs twice that in one; Spot costs what on demand does, at the most.
    """
    for rule in _document()["derived"]:
        kind = str(rule["key"])
        if not key.startswith(kind) or not re.fullmatch(rule.get("types", ".*"), key.removeprefix(kind)):
            continue
        from_key = key.replace(kind, rule["from"], 1)
        base = figure(from_key, region, today=today, own=own) or derived_figure(
            from_key, region, today=today, own=own
        )
        if base is None:
            return None
        times = f"{rule['factor']:g} times " if rule["factor"] != 1 else ""
        return replace(
            base, key=key, usd=rule["factor"] * base.usd, verified=False, live=False,
            source=f"{times}{base.usd:g} of {base.key} ({rule['source']}); that: {base.source}",
        )  # fmt: skip
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsPlan:
    """A commitment to spend so much per hour, and what it takes off at the most."""

    kind: str
    """First word of the keys of what it may cover: `ec2`, `hyperpod`."""
    name: str
    most_percent: int
    """Off the on-demand price, at the most; AWS publishes no rate by type outside of its API."""
    note: str
    source: str
    date: str


def savings_plans(kind: str) -> tuple[SavingsPlan, ...]:
    """The Savings Plans for what is sold under keys of this kind."""
    return tuple(SavingsPlan(**row) for row in _document()["savings_plans"] if row["kind"] == kind)


def edition() -> dt.date:
    """Day on which the tables were collected."""
    return dt.date.fromisoformat(_document()["about"]["date"])


def price_kinds() -> frozenset[str]:
    """First words of all keys that something may be priced by: `ec2`, `nat`, `lustre` ..."""
    rules = _document()["derived"]
    names = (
        {key for key, _ in _figures()} | {rule["key"] for rule in rules} | {rule["from"] for rule in rules}
    )
    return frozenset(name.partition(".")[0] for name in names) | _UNPRICED


_UNPRICED = frozenset({"hyperpod-volume", "savings-1y"})
"""Kinds of which the tables have no figure."""


def offered_zone_ids(instance_type: str, region: str) -> tuple[str, ...]:
    """Zone ids of the Region that offer the type. Empty means unknown, never "nowhere".

    Source: EC2 DescribeInstanceTypeOfferings as moto and skypilot-org/skypilot-catalog ship it,
    mostly undated; accelerated types only.
    """
    row = _rows().get((instance_type, region))
    return tuple(filter(None, row["az_ids"].split(";"))) if row else ()


@cache
def _figures() -> Mapping[tuple[str, str], tuple[tuple[dt.date, Figure], ...]]:
    """All figures by key and place, each with the day from which it holds, in that order."""
    found: dict[tuple[str, str], list[tuple[dt.date, Figure]]] = {}
    for since, price in (*_of_services(), *_of_instances()):
        found.setdefault((price.key, price.region), []).append((since, price))
    return MappingProxyType({place: tuple(figures) for place, figures in found.items()})


def _of_services() -> Iterator[tuple[dt.date, Figure]]:
    for table in _document()["tables"]:
        for key, usd in table["usd"].items():
            yield dt.date.min, Figure(
                key=key, region=table["region"] or "", usd=usd, unit=table["unit"], source=table["source"],
                date=_date(table["date"] or ""), verified=table["verified"],
            )  # fmt: skip


def _of_instances() -> Iterator[tuple[dt.date, Figure]]:
    """The figures of `prices.csv`. Capacity Blocks have an earlier and an announced price."""
    blocks, reserved = (
        _document()["capacity_blocks"],
        _document()["reserved_1y"],
    )
    change = dt.date.fromisoformat(blocks["from"])
    for (name, place), row in _rows().items():
        for kind, column, since, source, day, verified in (
            ("ec2", "on_demand_usd_hr", dt.date.min, row["od_source"], row["od_date"], True),
            ("reserved-1y", "reserved_1y_usd_hr", dt.date.min, reserved["source"], reserved["date"], True),
            ("capacity-block", "capacity_block_usd_hr", dt.date.min, row["cb_source"], row["cb_date"], True),
            (
                "capacity-block", "cb_usd_hr_from_2026_10_07", change,
                blocks["source"], blocks["from"], blocks["verified"],
            ),
        ):  # fmt: skip
            if row[column]:
                yield since, Figure(
                    key=f"{kind}.{name}", region=place, usd=float(row[column]), unit="hour", source=source,
                    date=_date(day), verified=verified,
                )  # fmt: skip


@cache
def _rows() -> Mapping[tuple[str, str], Mapping[str, str]]:
    with (Path(__file__).parent / "prices.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["instance_type"], r["region_or_zone"]): r for r in csv.DictReader(file)}
    return MappingProxyType(rows)


def _date(text: str) -> dt.date | None:
    return None if text in ("", "undated") else dt.date.fromisoformat(text)
