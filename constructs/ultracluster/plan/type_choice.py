"""Instance types beside each other for a model: who holds it, how fast, for what price, and how it is had."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, instance_types, regions, ultraservers
from ultracluster.catalog.accelerator_speeds import AcceleratorSpeed, accelerator_speed
from ultracluster.catalog.prices import Figure, figure
from ultracluster.config.nodes import MOST_NODES
from ultracluster.model.checkpoints import state_gib
from ultracluster.plan.choice import obtainable

PRECISION = "bf16"
"""Number format of the peaks that are compared: the only one that every accelerator has."""
_BY = {"ec2": "on demand", "capacity-block": "Capacity Block"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypePrice:
    """A price of one node; USD per hour."""

    usd: float
    by: str
    """`on demand` or `Capacity Block`."""
    figure: Figure
    """Price list entry; that of an UltraServer, where the type is sold in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow:
    """An instance type for a model; null is unknown, never 0."""

    instance_type: str
    accelerators: int
    accelerator: str
    memory_gib: float
    """Accelerator memory of one node."""
    nodes: int
    """Number that holds the training state at the least."""
    pflops: float
    """10^15 dense operations per second of one node at the most, in BF16."""
    prices: tuple[TypePrice, ...]
    """The lowest known of each kind, the lowest first."""
    efa_gbps: float | None
    obtainable: tuple[str, ...]
    """Kinds of capacity that some orchestrator has it by."""

    @property
    def price(self) -> TypePrice | None:
        """The lowest."""
        return next(iter(self.prices), None)

    @property
    def usd_per_pflops(self) -> float | None:
        """USD per hour of 10^15 operations per second at the peak."""
        return self.price.usd / self.pflops if self.price else None

    @property
    def nodes_usd(self) -> float | None:
        """USD per hour of the nodes that hold the state."""
        return self.price.usd * self.nodes if self.price else None


def type_rows(parameters: float, capacity: str = "", today: dt.date | None = None) -> list[TypeRow]:
    """The largest type of each family with EFA that holds a training state, the cheapest per operation first.

    Types without a price come last; those whose peak is not published are left out, as are those that would
    need more nodes than an environment may have.

    Args:
        parameters: of the model.
        capacity: only types that are had by it; any where empty.
        today: decides which of several announced prices counts.
    """
    rows = (
        _row(kind, speed, parameters, today)
        for kind, speed in _largest()
        if not capacity or capacity in obtainable(kind)
    )
    fitting = [row for row in rows if row.nodes <= MOST_NODES]
    return sorted(fitting, key=lambda row: (row.usd_per_pflops or math.inf, row.nodes, row.instance_type))


def _largest() -> Iterator[tuple[InstanceType, AcceleratorSpeed]]:
    families: dict[str, InstanceType] = {}
    for kind in instance_types().values():
        if kind.accelerator and kind.efa_interfaces != 0:
            other = families.get(kind.family)
            if other is None or _size(kind) > _size(other):
                families[kind.family] = kind
    for kind in families.values():
        if kind.accelerator and (speed := accelerator_speed(kind.accelerator.name)):
            yield kind, speed


def _size(kind: InstanceType) -> tuple[int, float]:
    return kind.accelerator.count if kind.accelerator else 0, kind.network_gbps or 0


def _row(kind: InstanceType, speed: AcceleratorSpeed, parameters: float, today: dt.date | None) -> TypeRow:
    accelerator = kind.accelerator
    assert accelerator is not None  # of those that are compared
    lowest: dict[str, TypePrice] = {}
    for price in sorted(_prices(kind, today), key=lambda price: price.usd):
        lowest.setdefault(price.by, price)
    return TypeRow(
        instance_type=kind.name,
        accelerators=accelerator.count,
        accelerator=accelerator.name,
        memory_gib=accelerator.memory_gib,
        nodes=math.ceil(state_gib(parameters) / accelerator.memory_gib),
        pflops=accelerator.count * speed.tflops[PRECISION] / 1000,
        prices=tuple(lowest.values()),
        efa_gbps=kind.network_gbps,
        obtainable=obtainable(kind),
    )


def _prices(kind: InstanceType, today: dt.date | None) -> Iterator[TypePrice]:
    """Prices of one node in every Region and Local Zone, the newest that holds."""
    for name in regions():
        if kind.on_demand is not False and (found := figure(f"ec2.{kind.name}", name, today=today)):
            yield TypePrice(usd=found.per_hour, by=_BY["ec2"], figure=found)
    for place in kind.capacity_block_regions:
        if found := figure(f"capacity-block.{kind.name}", place, today=today):
            yield TypePrice(usd=found.per_hour, by=_BY["capacity-block"], figure=found)
    for name in kind.ultraserver:
        server = ultraservers()[name]
        for place in server.capacity_block_regions:
            if found := figure(f"capacity-block.{name}", place, today=today):
                usd = found.per_hour / server.instances
                yield TypePrice(usd=usd, by=_BY["capacity-block"], figure=found)
