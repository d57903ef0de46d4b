"""One thing that is billed, with the best price there is for it, and what is to be said of that price."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import ultraservers, zone_region
from ultracluster.catalog.prices import Figure, Own, derived_figure, figure
from ultracluster.config import Environment
from ultracluster.plan.billed_item import PREPAID, Item

Mark = Literal["", "old", "undated", "derived", "elsewhere", "not priced", "by use"]
"""Empty: the thing's own price in this Region, of the last 90 days; such lines are the strict sum. `old` and
`undated`: its own. `derived`: follows from another thing's price. `elsewhere`: that of another Region, or
that of the Region in a Local Zone."""

REFERENCE_REGIONS = ("us-east-1", "us-west-2")
"""Where a price is looked for when the environment's Region has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An item with its price."""

    item: Item
    figure: Figure | None
    mark: Mark
    days_old: int | None
    """Age of the price; None without one or without a date."""

    @property
    def per_hour(self) -> float | None:
        """USD per hour of what there always is; None without a price, or where use decides."""
        return self._at(self.item.quantity)

    @property
    def most_per_hour(self) -> float | None:
        """USD per hour of all there may be."""
        return self._at(self.item.greatest)

    @property
    def prepaid(self) -> bool:
        """A Capacity Block or training plan: a fee for a number of days."""
        return self.item.purchase in PREPAID

    def _at(self, quantity: float) -> float | None:
        if self.figure is None or self.figure.unit == "gb" or self.mark == "by use":
            return None
        return self.figure.per_hour * quantity


def price_line(environment: Environment, item: Item, *, today: dt.date, own: Own) -> Line:
    """Price an item: by its own price in the Region, else by what it follows from there, else elsewhere."""
    found, mark = _best(environment, item, today, own)
    if found and not mark:
        mark = "undated" if found.date is None else "old" if found.old(today) else ""
    if item.area == "by use":
        mark = "by use"
    days = (today - found.date).days if found and found.date else None
    return Line(item=item, figure=found, mark=mark, days_old=days)


def _best(environment: Environment, item: Item, today: dt.date, own: Own) -> tuple[Figure | None, Mark]:
    def listed(place: str) -> Figure | None:
        return figure(item.key, place, today=today, own=own)

    def derived(place: str) -> Figure | None:
        return derived_figure(item.key, place, today=today, own=own)

    places, local = _places(environment, item)
    if hit := _first(listed, places):
        return hit, "elsewhere" if local and hit.region == environment.region else ""
    if hit := _first(derived, places):
        return hit, "derived"
    others = [region for region in REFERENCE_REGIONS if region != environment.region]
    if hit := _first(listed, others):
        return hit, "elsewhere"
    hit = _first(derived, others)
    return hit, "derived" if hit else "not priced"


def _first(look: Callable[[str], Figure | None], places: Sequence[str]) -> Figure | None:
    return next((hit for place in places if (hit := look(place))), None)


def _places(environment: Environment, item: Item) -> tuple[list[str], bool]:
    """Where an item has its price, and whether that is a Local Zone, which has prices of its own."""
    region, zone = environment.region, environment.network.zone_id
    if item.key.startswith("spot."):
        return [zone, region], False
    places = [region]
    kind, _, name = item.key.partition(".")
    server = ultraservers().get(name) if kind == "capacity-block" else None
    for place in server.capacity_block_regions if server else ():  # they may be sold in a Local Zone only
        found = zone_region(place)
        if found and found.name == region:
            places.append(place)
    zonal = item.area in ("nodes", "storage", "network")
    return places, zonal and not re.fullmatch(r"[a-z]+\d+-az\d+", zone)
