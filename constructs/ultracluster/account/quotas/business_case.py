"""The text that AWS asks for before it raises quotas of scarce instances, and how long that may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from ultracluster.account.quotas.requests import Request
from ultracluster.catalog.quotas import LeadTime, lead_time
from ultracluster.config.capacity import CapacityBlock
from ultracluster.model import Cluster, Group

STEPS = (8, 64, 512)
"""Nodes at which a cluster is proven before it grows; the environment's own number is the last step."""


def business_case(
    cluster: Cluster, requests: Iterable[Request], starts: Iterable[datetime], now: datetime
) -> list[str]:
    """Lines to copy into the case, then the lead time; none where no quota of instances is too small.

    Args:
        starts: beginnings of capacity by the account; that of the file counts, too.
    """
    scarce = [request for request in requests if request.scarce and request.state != "approved"]
    groups = [group for group in cluster.with_role("compute").values() if group.most_nodes]
    if not scarce or not groups:
        return []
    lines = [
        "for AWS, which asks for a reason before it raises quotas of instances (complete what is in <>):"
    ]
    lines += [f"  {line}" for line in _case(cluster, groups, scarce)]
    times = lead_time()
    lines.append(f"lead time: {times.words}")
    begins = min([*starts, *_written(groups)], default=None)
    if begins and begins - now < timedelta(weeks=times.most_weeks):
        lines.append(f"  {_late(begins, now, times)}")
    return lines


def _case(cluster: Cluster, groups: list[Group], scarce: list[Request]) -> Iterator[str]:
    account, zone = cluster.environment.account or "<account>", cluster.environment.network.zone_id
    yield f"Environment {cluster.name} in {account}, {cluster.region} ({zone}), {cluster.traits.kind}."
    yield (
        "Purpose: synchronous training of foundation models; all nodes of a job work at once, in one "
        "Availability Zone. Model, framework and owner: <...>."
    )
    for group in groups:
        yield f"Nodes: {_nodes(group, group.most_nodes)}, {group.capacity.kind}."
    yield "Quotas: " + "; ".join(f"{one.name} {one.current:g} -> {one.asked:g}" for one in scarce) + "."
    largest = max(groups, key=lambda group: group.most_nodes)
    steps = [*(step for step in STEPS if step < largest.most_nodes), largest.most_nodes]
    if len(steps) > 1:
        yield "Steps, each after the one before has passed its test of the fabric:"
        yield from (f"  {number}. {_nodes(largest, step)}" for number, step in enumerate(steps, 1))
    yield "From <day> to <day>; a smaller number that can be had earlier helps: <yes or no>."


def _nodes(group: Group, nodes: int) -> str:
    """`16 x TYPE (3,072 vCPUs, 128 x ACCELERATOR)`."""
    kind = group.type
    parts = [f"{kind.vcpu * nodes:,} vCPUs"] if kind and kind.vcpu else []
    if kind and kind.accelerator:
        parts.append(f"{kind.accelerator.count * nodes:,} x {kind.accelerator.name}")
    return f"{nodes:,} x {group.settings.instance_type}" + (f" ({', '.join(parts)})" if parts else "")


def _written(groups: list[Group]) -> Iterator[datetime]:
    for group in groups:
        if isinstance(group.capacity, CapacityBlock) and group.capacity.starts:
            yield datetime.fromisoformat(group.capacity.starts.replace("Z", "+00:00")).astimezone(UTC)


def _late(begins: datetime, now: datetime, times: LeadTime) -> str:
    days = (begins - now).days
    when = f"begins on {begins:%Y-%m-%d}, in {days} day{'s' * (days != 1)}" if days >= 0 else "has begun"
    return (
        f"! the capacity {when}: sooner than {times.most_weeks} weeks. Inform AWS's account team: what is "
        "paid ahead is not used while the quota is too small."
    )
