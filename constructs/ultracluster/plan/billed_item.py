"""A thing that is billed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PREPAID = ("capacity-block", "training-plan")
"""What is paid upfront, for a number of days."""

Area = Literal["nodes", "storage", "network", "control plane", "security", "observability", "by use"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that is billed."""

    area: Area
    what: str
    key: str
    """Name of its price, as in `catalog/service_prices.json`; empty where none can be asked for."""
    purchase: str
    """`on-demand`, `spot`, `reservation`, `capacity-block`, `training-plan`, or `usage` for the rest."""
    unit: str
    """What is counted: `instance`, `GiB`, `MB/s`, `gateway` ..."""
    quantity: float = 0
    """How many there always are."""
    greatest: float = 0
    """How many there may be."""
    group: str = ""
    """The node group, for instances."""
    note: str = ""


def standing(area: Area, what: str, key: str, unit: str, quantity: float = 1) -> Item:
    """What is always there, as many as `quantity` says."""
    return Item(
        area=area, what=what, key=key, purchase="usage", unit=unit, quantity=quantity, greatest=quantity
    )
