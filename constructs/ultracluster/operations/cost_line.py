"""One thing that is billed, with its price: how far it holds, and what stands in for one not known."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ultracluster.catalog import ultraservers, zone_region
from ultracluster.catalog.prices import Figure, derived_figure, figure, hyperpod_premium
from ultracluster.config import Environment
from ultracluster.operations.billed_item import Item

State = Literal["counted", "upfront", "expired", "indicative", "unknown", "by use"]
"""`counted`: in the sum. `upfront`: a fee, beside the sum. `expired`, `indicative`: has a figure, past its
date or without one, that is not summed. `unknown`: has none. `by use`: depends on what is done."""

Basis = Literal["own", "derived", "elsewhere", "none"]

REFERENCE_REGIONS = ("us-east-1", "us-west-2")
"""Where a figure is looked for when the environment's Region has none; only ever shown, never summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An item with its price."""

    item: Item
    state: State
    figure: Figure | None
    elsewhere: Figure | None
    """Where there is none: that of another Region, in a Local Zone that of its own; for orientation."""
    ec2: Figure | None
    """HyperPod's instances: EC2's list price of the type, in the Region or else us-east-1; never summed."""
    derived: Figure | None
    """Where there is none: a figure that follows from another thing's price; for orientation."""
    days: int | None

    @property
    def around(self) -> tuple[float, float] | None:
        """HyperPod without a figure: USD per hour of all of them, from EC2's list price and the usual
        premium. An order of magnitude, never summed."""
        if self.figure is not None or self.ec2 is None:
            return None
        low, high = (factor * self.ec2.per_hour * self.item.quantity for factor in hyperpod_premium())
        return low, high

    @property
    def about(self) -> Figure | None:
        """The nearest figure there is: its own of any age, one that follows from another thing's, one of
        another Region. For orientation: what holds is `state`'s to say."""
        return self.figure or self.derived or self.elsewhere

    @property
    def basis(self) -> Basis:
        """What `about` is."""
        if self.figure is not None:
            return "own"
        return "derived" if self.derived else "elsewhere" if self.elsewhere else "none"

    @property
    def about_per_hour(self) -> float | None:
        """USD per hour of what there always is, at `about`; None without one, or where use decides."""
        if self.state == "by use" or self.about is None:
            return None
        return self.about.per_hour * self.item.quantity

    @property
    def premium(self) -> float | None:
        """HyperPod's price over EC2's in the same Region: 0.2 is 20 % more. None where one is not known."""
        if self.figure is None or self.ec2 is None or self.ec2.region != self.figure.region:
            return None
        return self.figure.per_hour / self.ec2.per_hour - 1

    @property
    def per_hour(self) -> float | None:
        """USD per hour of what there always is; None without a figure, or where use decides."""
        return self._at(self.item.quantity)

    @property
    def greatest_per_hour(self) -> float | None:
        """USD per hour of all there may be."""
        return self._at(self.item.greatest)

    @property
    def fee(self) -> float | None:
        """USD paid upfront for the days asked for; None without days, or without a figure that holds."""
        if self.state != "upfront" or self.figure is None or self.days is None:
            return None
        return self.figure.per_hour * 24 * self.days * self.item.quantity

    def _at(self, quantity: float) -> float | None:
        if self.figure is None or self.figure.unit == "gb":
            return None
        return self.figure.per_hour * quantity


def reason(line: Line) -> str:
    """Why a line is in no sum; empty where it is in one."""
    if line.state == "upfront" and line.days is None:
        return "paid upfront, for a number of days that is not given"
    found = line.figure
    return {
        "unknown": "no price known",
        "indicative": "price without a date",
        "expired": f"price expired on {found.expires}" if found and found.expires else "price expired",
        "by use": "billed by use",
    }.get(line.state, "")


def price_line(
    environment: Environment,
    item: Item,
    *,
    today: dt.date,
    days: int | None,
    accept_expired: bool,
    live: Mapping[str, Figure],
) -> Line:
    """Price an item: asked of AWS, else of the table, else with what stands in for it."""
    region = environment.region
    found = live.get(item.key) or _look_up(item.key, region, today)
    elsewhere = derived = None
    others = [other for other in REFERENCE_REGIONS if other != region]
    if found and found.region == region and _in_local_zone(environment, item):
        found, elsewhere = None, found
    ec2 = None
    if item.key.startswith("hyperpod."):
        ec2 = _first(item.key.replace("hyperpod.", "ec2.", 1), (region, REFERENCE_REGIONS[0]), today)
    if found is None:
        elsewhere = elsewhere or _first(item.key, others, today)
        derived = _with_premium(item.key, ec2) if ec2 else _derived(item.key, (region, *others), today)
    return Line(
        item=item,
        state=_state(item, found, accept_expired),
        figure=found,
        elsewhere=elsewhere,
        ec2=ec2,
        derived=derived,
        days=days,
    )


def _first(key: str, regions: Sequence[str], today: dt.date) -> Figure | None:
    return next((hit for region in regions if (hit := _look_up(key, region, today))), None)


def _derived(key: str, regions: Sequence[str], today: dt.date) -> Figure | None:
    return next((hit for region in regions if (hit := derived_figure(key, region, today=today))), None)


def _with_premium(key: str, ec2: Figure) -> Figure:
    """HyperPod's price from EC2's: the middle of the usual premium."""
    low, high = hyperpod_premium()
    more = f"{round(100 * (low - 1))}-{round(100 * (high - 1))} %"
    return replace(
        ec2, key=key, usd=ec2.usd * (low + high) / 2, verified=False,
        source=f"the middle of {more} over EC2's list price of {ec2.usd:g}: {ec2.source}",
    )  # fmt: skip


def _in_local_zone(environment: Environment, item: Item) -> bool:
    """Whether a thing stands in a Local Zone, which has prices of its own."""
    zonal = item.area in ("nodes", "storage", "network")
    return zonal and not re.fullmatch(r"[a-z]+\d+-az\d+", environment.network.zone_id)


def _look_up(key: str, region: str, today: dt.date) -> Figure | None:
    kind, _, name = key.partition(".")
    server = ultraservers().get(name) if kind == "capacity-block" else None
    places = [region]
    for place in server.capacity_block_regions if server else ():  # they may be sold in a Local Zone alone
        found = zone_region(place)
        if found and found.name == region:
            places.append(place)
    return next((hit for place in places if (hit := figure(key, place, today=today))), None)


def _state(item: Item, found: Figure | None, accept_expired: bool) -> State:
    if item.area == "by use":
        return "by use"
    if found is None:
        return "unknown"
    if found.indicative:
        return "indicative"
    if found.expired and not accept_expired:
        return "expired"
    return "upfront" if item.purchase in ("capacity-block", "training-plan") else "counted"
