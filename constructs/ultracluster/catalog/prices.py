"""List prices with their age, and the zones that offer a type.

`prices.csv` holds EC2 list prices (Linux, shared tenancy, USD per instance-hour), each with source
and date. HyperPod's prices are 18-25 % higher: never price it with these figures.
"""

import csv
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

Purchase = Literal["on-demand", "capacity-block"]

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


def _date(text: str) -> dt.date | None:
    return None if text in ("", "undated") else dt.date.fromisoformat(text)
