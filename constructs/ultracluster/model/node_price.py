"""What one node costs by the hour, as far as list prices are known: for the money that stands idle."""

from __future__ import annotations

import datetime as dt
from typing import assert_never

from ultracluster.catalog import ultraservers
from ultracluster.catalog.prices import (
    REFERENCE_REGIONS,
    Figure,
    derived_figure,
    edition,
    figure,
)
from ultracluster.model.cluster import Cluster, Group


def price_key(group: Group) -> str:
    """Name of the price of one instance of the group, as in `catalog/service_prices.json`."""
    kind, hyperpod = group.settings.instance_type, group.in_service
    match group.capacity.kind:
        case "on-demand" | "reservation":
            return f"{'hyperpod' if hyperpod else 'ec2'}.{kind}"
        case "spot":
            return f"{'hyperpod-spot' if hyperpod else 'spot'}.{kind}"
        case "training-plan":
            return f"training-plan.{kind}"
        case "capacity-block":
            return f"capacity-block.{kind}"
        case _ as never:
            assert_never(never)


def usd_per_hour(cluster: Cluster, group: Group, today: dt.date | None = None) -> float | None:
    """USD per hour of one node; None where no price is known (never 0).

    List prices, as `ultracluster cost` takes them: of the Region, else what follows from another price there,
    else of another Region. A part of an UltraServer costs its share of the whole.

    Args:
        cluster: what the environment comes to.
        group: whose node.
        today: which prices hold; by default the day of the tables, so that the same release says the same.
    """
    on = today or edition()
    key = price_key(group)
    found = _figure(key, cluster.region, on)
    if found:
        return found.per_hour
    type_name = key.partition(".")[2]
    for server in ultraservers().values():
        if server.member == type_name and key.startswith("capacity-block."):
            for place in (*server.capacity_block_regions, cluster.region):
                if whole := figure(f"capacity-block.{server.name}", place, today=on):
                    return whole.per_hour / server.instances
    return None


def _figure(key: str, region: str, on: dt.date) -> Figure | None:
    others = [one for one in REFERENCE_REGIONS if one != region]
    for places in ([region], others):
        for look in (figure, derived_figure):
            for place in places:
                if found := look(key, place, today=on):
                    return found
    return None


__all__ = ["price_key", "usd_per_hour"]
