"""List prices with their age, and the zones that offer a type.

`prices.csv` holds EC2 list prices (Linux, shared tenancy, USD per instance-hour), each with source
and date. HyperPod's prices are 18-25 % higher: never price it with these figures. `service_prices.json`
holds HyperPod's own and those of everything else that a cluster is billed for; `figure` finds both.
"""

import csv
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Purchase = Literal["on-demand", "capacity-block"]
PriceUnit = Literal["hour", "day", "month", "gb"]

VALID_FOR = dt.timedelta(days=90)
"""How long a dated figure is taken to hold."""

# AWS announced other Capacity Block prices from this day on. The new figures have one source only
# (unverified); that the old ones end with it is the reading on the safe side.
CAPACITY_BLOCK_CHANGE = dt.date(2026, 10, 7)
_ANNOUNCED = "cb_usd_hr_from_2026_10_07_SINGLE_SOURCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One list price. Show `source` and `date` with it, and never sum it when it has expired."""

    instance_type: str
    """EC2 name, or an UltraServer's."""
    region: str
    """Region, or Local Zone name ("us-east-1-dfw-2a")."""
    purchase: Purchase
    usd_per_hour: float
    """USD per instance-hour; per UltraServer-hour for an UltraServer."""
    source: str
    date: dt.date | None
    """Day of the figure; None = undated."""
    expires: dt.date | None
    """Last day on which it is taken to hold; None = undated."""
    expired: bool
    """Past that day. Always true of an undated figure."""
    verified: bool
    """False where a single source announced it."""

    @property
    def indicative(self) -> bool:
        """Undated: an order of magnitude, no more."""
        return self.date is None


def price(
    instance_type: str,
    region: str,
    *,
    purchase: Purchase = "on-demand",
    today: dt.date | None = None,
) -> Price | None:
    """The list price of one instance-hour, or None where none is known (never "not sold").

    `region` is a Region or a Local Zone name; `today` decides what is expired.
    """
    row = _rows().get((instance_type, region))
    if row is None:
        return None
    on = today or dt.date.today()
    verified = True
    day: dt.date | None
    if purchase == "on-demand":
        usd, source, day = row["on_demand_usd_hr"], row["od_source"], _date(row["od_date"])
    elif row[_ANNOUNCED] and on >= CAPACITY_BLOCK_CHANGE:
        usd, source, day = (
            row[_ANNOUNCED],
            "announced, single source (unverified)",
            CAPACITY_BLOCK_CHANGE,
        )
        verified = False
    else:
        usd, source, day = row["capacity_block_usd_hr"], row["cb_source"], _date(row["cb_date"])
    if not usd:
        return None
    expires = day + VALID_FOR if day else None
    if expires and day and purchase == "capacity-block" and day < CAPACITY_BLOCK_CHANGE:
        expires = min(expires, CAPACITY_BLOCK_CHANGE - dt.timedelta(days=1))
    return Price(
        instance_type=instance_type,
        region=region,
        purchase=purchase,
        usd_per_hour=float(usd),
        source=source,
        date=day,
        expires=expires,
        expired=expires is None or on > expires,
        verified=verified,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One price of one thing, whatever is sold. Show `source` and `date` with it."""

    key: str
    """What is sold: `ec2.p5.48xlarge`, `hyperpod.p5.48xlarge`, `nat`, `lustre.persistent-2-ssd.125`."""
    region: str
    """Region or Local Zone of the figure; empty where its source does not say."""
    usd: float
    unit: PriceUnit
    """What `usd` buys: one of the things for an hour, a day or a month, or one GB of data."""
    source: str
    date: dt.date | None
    """Day of the figure; None = undated."""
    expires: dt.date | None
    """Last day on which it is taken to hold; None = undated."""
    expired: bool
    """Past that day. Always true of an undated figure."""
    verified: bool
    """False where it rests on a single source that is not the price list itself."""
    live: bool = False
    """Asked of AWS just now."""

    @property
    def indicative(self) -> bool:
        """Undated: an order of magnitude, no more."""
        return self.date is None

    @property
    def per_hour(self) -> float:
        """USD for one of the things for an hour; 0 for what is paid by the GB."""
        return {"hour": self.usd, "day": self.usd / 24, "month": self.usd / HOURS_PER_MONTH, "gb": 0.0}[
            self.unit
        ]


HOURS_PER_MONTH = 730
"""Hours of the month that AWS's own calculator and bills by the GB-month count with: 8760 / 12."""


def figure(key: str, region: str, *, today: dt.date | None = None) -> Figure | None:
    """The list price of what `key` names in a Region or Local Zone; None where none is known.

    `today` decides what is expired. Keys are described in `service_prices.json`.
    """
    on = today or dt.date.today()
    kind, _, name = key.partition(".")
    purchase = _PURCHASES.get(kind)
    if purchase and (found := price(name, region, purchase=purchase, today=on)):
        return Figure(
            key=key, region=region, usd=found.usd_per_hour, unit="hour", source=found.source,
            date=found.date, expires=found.expires, expired=found.expired, verified=found.verified,
        )  # fmt: skip
    table = _service_tables().get((key, region)) or _service_tables().get((key, ""))
    if table is None:
        return None
    day = _date(table["date"] or "")
    expires = day + VALID_FOR if day else None
    return Figure(
        key=key, region=table["region"] or "", usd=table["usd"][key], unit=table["unit"],
        source=table["source"], date=day, expires=expires, expired=expires is None or on > expires,
        verified=table["verified"],
    )  # fmt: skip


def derived_figure(key: str, region: str, *, today: dt.date | None = None) -> Figure | None:
    """A figure that follows from that of another thing in the same place: the instance of a database in two
    zones costs twice that in one. For orientation alone, never to be summed; None where none follows.
    """
    for rule in _service_document()["derived"]:
        if not key.startswith(rule["key"]):
            continue
        base = figure(key.replace(rule["key"], rule["from"], 1), region, today=today)
        if base:
            return replace(
                base, key=key, usd=rule["factor"] * base.usd, verified=False,
                source=f"{rule['factor']} times {base.key}: {base.source}; {rule['source']}",
            )  # fmt: skip
    return None


_PURCHASES: Mapping[str, Purchase] = {"ec2": "on-demand", "capacity-block": "capacity-block"}


def hyperpod_premium() -> tuple[float, float]:
    """HyperPod's list price over EC2's: the least and the greatest factor seen. For orientation alone."""
    low, high = _service_document()["hyperpod_premium"]
    return low, high


def offered_zone_ids(instance_type: str, region: str) -> tuple[str, ...]:
    """Zone ids of the Region that offer the type. Empty means unknown, never "nowhere".

    Source: EC2 DescribeInstanceTypeOfferings as moto and skypilot-org/skypilot-catalog ship it,
    mostly undated; accelerated types only.
    """
    row = _rows().get((instance_type, region))
    return tuple(filter(None, row["az_ids"].split(";"))) if row else ()


@cache
def _rows() -> Mapping[tuple[str, str], Mapping[str, str]]:
    with (Path(__file__).parent / "prices.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["instance_type"], r["region_or_zone"]): r for r in csv.DictReader(file)}
    return MappingProxyType(rows)


@cache
def _service_tables() -> Mapping[tuple[str, str], dict[str, Any]]:
    return MappingProxyType(
        {
            (key, table["region"] or ""): table
            for table in _service_document()["tables"]
            for key in table["usd"]
        }
    )


@cache
def _service_document() -> Mapping[str, Any]:
    return json.loads((Path(__file__).parent / "service_prices.json").read_text(encoding="utf-8"))


def _date(text: str) -> dt.date | None:
    return None if text in ("", "undated") else dt.date.fromisoformat(text)
