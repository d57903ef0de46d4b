"""What an environment costs: an estimate of everything that has a price, each marked by its age and origin.

What has no price is named and never 0. The strict sum has only what needs no mark: the thing's own price in
this Region, of the last 90 days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import is_local_zone, ultraservers, zone_region
from ultracluster.catalog.prices import (
    HOURS_PER_MONTH,
    REFERENCE_REGIONS,
    Figure,
    Own,
    SavingsPlan,
    derived_figure,
    figure,
    savings_plans,
)
from ultracluster.model import Cluster, Group
from ultracluster.plan.billed import billed
from ultracluster.plan.billed_item import PREPAID, Item
from ultracluster.plan.node_order import NodeOrder, node_order

Mark = Literal["", "old", "undated", "derived", "elsewhere", "not priced", "by use"]
"""Empty: the thing's own price in this Region, of the last 90 days; such lines are the strict sum. `old` and
`undated`: its own. `derived`: follows from another thing's price. `elsewhere`: that of another Region, or
that of the Region in a Local Zone."""


@dataclass(frozen=True, slots=True)
class Periods:
    """USD; a month has 730 hours."""

    hour: float | None
    day: float | None
    month: float | None


def periods(per_hour: float | None) -> Periods | None:
    """The same by the hour, the day and the month."""
    if per_hour is None:
        return None
    return Periods(*(round(per_hour * hours, 6) for hours in (1, 24, HOURS_PER_MONTH)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An item with its price."""

    item: Item
    figure: Figure | None
    mark: Mark
    """Why the strict sum leaves it out: `old`, `undated`, `derived`, `elsewhere`."""
    days_old: int | None
    """Age of the price, where it has a date."""

    @property
    def per_hour(self) -> float | None:
        """USD per hour of what there always is; None without a price, or where use decides."""
        return self._at(self.item.quantity)

    @property
    def cost(self) -> Periods | None:
        return periods(self.per_hour)

    @property
    def most_per_hour(self) -> float | None:
        """USD per hour of all there may be."""
        return self._at(self.item.greatest)

    @property
    def prepaid(self) -> bool:
        """Whether it is paid before it is used, and not in the sums by hour."""
        return self.item.purchase in PREPAID

    def _at(self, quantity: float) -> float | None:
        if self.figure is None or self.figure.unit == "gb" or self.mark == "by use":
            return None
        return self.figure.per_hour * quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What is paid for nothing while a node is idle or has failed."""

    group: str
    """The compute group with the most nodes."""
    instance_type: str
    prepaid: bool
    """It is paid upfront, whether or not it works."""
    mark: Mark
    """What is to be said of the node's price."""
    node_per_hour: float | None
    """USD per hour of one node; None without a price."""
    job_groups: tuple[str, ...]
    """The groups of its partition."""
    job_nodes: int
    """Their nodes: those of a synchronous job that all wait for the one."""
    job_per_hour: float | None
    """USD per hour of all of them; None where one has no price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A group on demand, with a commitment of one year in place of it."""

    group: str
    by: str
    """`an EC2 Reserved Instance`, `a Compute Savings Plan`."""
    figure: Figure
    on_demand: Figure


_COMMITMENTS = {"reserved-1y": "an EC2 Reserved Instance", "savings-1y": "a Compute Savings Plan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an environment costs. USD, list prices, without tax and discounts; a month has 730 hours."""

    environment: str
    asked_as: str
    """What a command calls it: its name or the path of its file."""
    region: str
    orchestrator: str
    today: dt.date
    days: int | None
    lines: tuple[Line, ...]
    idle: Idle | None
    order: NodeOrder | None
    """Describe what the order of HyperPod's nodes and the system stack costs; None elsewhere."""
    committed: tuple[Committed, ...]
    faults: tuple[str, ...]
    """Why prices of a file, or of AWS, could not be used."""

    @property
    def standing(self) -> tuple[Line, ...]:
        """What is always there and not billed by use."""
        return tuple(line for line in self.lines if line.item.quantity and line.mark != "by use")

    @property
    def priced(self) -> tuple[Line, ...]:
        """The lines of the estimate."""
        return tuple(line for line in self.standing if line.figure)

    @property
    def strict(self) -> tuple[Line, ...]:
        """The lines of the strict sum."""
        return tuple(line for line in self.standing if not line.mark)

    @property
    def not_priced(self) -> tuple[Line, ...]:
        """The lines without any price."""
        return tuple(line for line in self.standing if not line.figure)

    @property
    def complete(self) -> bool:
        """Whether the strict sum lacks only what is billed by use, and every given price could be used."""
        return len(self.strict) == len(self.standing) and not self.faults

    @property
    def per_hour(self) -> float | None:
        """USD per hour of everything that has a price; None where nothing has. What is paid upfront is in it
        by the hour."""
        return _sum(self.priced, lambda line: line.per_hour)

    @property
    def most_per_hour(self) -> float | None:
        """USD per hour when every group has all the nodes it may have."""
        lines = [line for line in self.lines if line.mark != "by use"]
        return _sum(lines, lambda line: line.most_per_hour)

    @property
    def strict_per_hour(self) -> float | None:
        """USD per hour of the strict lines; None where there is none."""
        return _sum(self.strict, lambda line: line.per_hour)

    @property
    def grows(self) -> bool:
        """Whether a group may have more nodes than it always has."""
        return any(line.item.greatest > line.item.quantity for line in self.lines)

    @property
    def upfront(self) -> float | None:
        """USD of all fees that are paid upfront, for `days`; None where there is none or one is not known."""
        if self.days is None:
            return None
        fees = [line.per_hour for line in self.standing if line.prepaid]
        if not fees or None in fees:
            return None
        return sum(fee for fee in fees if fee is not None) * 24 * self.days

    @property
    def savings_plans(self) -> tuple[SavingsPlan, ...]:
        """Those that may cover instances on demand of this environment."""
        kinds = {
            line.item.key.partition(".")[0]
            for line in self.standing
            if line.item.group and line.item.purchase == "on-demand"
        }
        return tuple(plan for kind in sorted(kinds) for plan in savings_plans(kind))

    @property
    def by_use(self) -> tuple[Line, ...]:
        """What is billed by use, and is in no sum."""
        return tuple(line for line in self.lines if line.mark == "by use")


def estimate(
    cluster: Cluster,
    *,
    today: dt.date | None = None,
    days: int | None = None,
    own: Own | None = None,
    faults: Sequence[str] = (),
) -> Estimate:
    """What an environment costs.

    Args:
        today: decides how old figures are, and which of several announced ones it is.
        days: length of Capacity Blocks and training plans, which are paid upfront.
        own: figures of the team, or asked of AWS just now, by key and place; they win over the tables.
        faults: why some of them could not be used.
    """
    on = today or dt.date.today()
    lines = tuple(_priced(cluster, item, today=on, own=own or {}) for item in billed(cluster, on))
    return Estimate(
        environment=cluster.name,
        asked_as=cluster.environment.asked_as,
        region=cluster.region,
        orchestrator=cluster.traits.kind,
        today=on,
        days=days,
        lines=lines,
        idle=_idle(cluster, lines),
        order=node_order(
            cluster, {line.item.group: (line.prepaid, line.per_hour) for line in lines if line.item.group}
        ),
        committed=tuple(_committed(cluster.region, lines, on, own)),
        faults=tuple(faults),
    )


def _committed(region: str, lines: Sequence[Line], today: dt.date, own: Own | None) -> Iterator[Committed]:
    for line in lines:
        kind, _, name = line.item.key.partition(".")
        if kind == "ec2" and line.figure and line.item.quantity and line.item.purchase == "on-demand":
            for of, by in _COMMITMENTS.items():
                if rate := figure(f"{of}.{name}", region, today=today, own=own):
                    yield Committed(group=line.item.group, by=by, figure=rate, on_demand=line.figure)


def _sum(lines: Sequence[Line], of: Callable[[Line], float | None]) -> float | None:
    sums = [usd for line in lines if (usd := of(line)) is not None]
    return sum(sums) if sums else None


def _priced(cluster: Cluster, item: Item, *, today: dt.date, own: Own) -> Line:
    """Price an item: by its own price in the Region, else by what it follows from there, else elsewhere."""
    found, mark = _best(cluster, item, today, own)
    if found and not mark:
        mark = "undated" if found.date is None else "old" if found.old(today) else ""
    if item.area == "by use":
        mark = "by use"
    days = (today - found.date).days if found and found.date else None
    return Line(item=item, figure=found, mark=mark, days_old=days)


def _best(cluster: Cluster, item: Item, today: dt.date, own: Own) -> tuple[Figure | None, Mark]:
    def listed(place: str) -> Figure | None:
        return figure(item.key, place, today=today, own=own)

    def derived(place: str) -> Figure | None:
        return derived_figure(item.key, place, today=today, own=own)

    places, local = _places(cluster, item)
    if hit := _first(listed, places):
        return hit, "elsewhere" if local and hit.region == cluster.region else ""
    if hit := _first(derived, places):
        return hit, "derived"
    others = [region for region in REFERENCE_REGIONS if region != cluster.region]
    if hit := _first(listed, others):
        return hit, "elsewhere"
    hit = _first(derived, others)
    return hit, "derived" if hit else "not priced"


def _first(look: Callable[[str], Figure | None], places: Sequence[str]) -> Figure | None:
    return next((hit for place in places if (hit := look(place))), None)


def _places(cluster: Cluster, item: Item) -> tuple[list[str], bool]:
    """Where an item has its price, and whether that is a Local Zone, which has prices of its own."""
    region, zone = cluster.region, cluster.environment.network.zone_id
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
    return places, zonal and is_local_zone(zone)


def _idle(cluster: Cluster, lines: Sequence[Line]) -> Idle | None:
    """The burn of the compute group with the most nodes; None without compute nodes."""
    of = {line.item.group: line for line in lines if line.item.group}
    compute = {name: group for name, group in cluster.with_role("compute").items() if name in of}
    # those that are always there, else those that may be: a job may hold them
    nodes = {name: group.settings.count or group.most_nodes for name, group in compute.items()}
    if not nodes:
        return None
    group = cluster.groups[max(nodes, key=lambda name: nodes[name])]
    # groups without a partition of their own share no jobs; under Kubernetes none has one
    partition = group.settings.partition
    job = [
        name
        for name in nodes
        if name == group.name or (partition and cluster.groups[name].settings.partition == partition)
    ]
    each = {name: node_usd(cluster.groups[name], of[name]) for name in job}
    return Idle(
        group=group.name,
        instance_type=group.settings.instance_type,
        prepaid=of[group.name].prepaid,
        mark=of[group.name].mark,
        node_per_hour=each[group.name],
        job_groups=tuple(job),
        job_nodes=sum(nodes[name] for name in job),
        job_per_hour=None
        if None in each.values()
        else sum(usd * nodes[name] for name, usd in each.items() if usd is not None),
    )


def node_usd(group: Group, line: Line) -> float | None:
    """USD per hour of one node; UltraServers are sold whole."""
    if line.figure is None:
        return None
    return line.figure.per_hour * line.item.greatest / group.most_nodes
