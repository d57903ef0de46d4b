"""Node-hours, accelerator-hours and money by user, team or job: records of a scheduler, times list prices.

The rows add up to what all nodes of the environment cost in the time: what no job held is the row `idle`, and
nodes that run no jobs are the row `service`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from ultracluster.model import Cluster
from ultracluster.plan.cost import Estimate, node_usd

By = Literal["user", "team", "job"]
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of a job: it held its nodes from `start` to `end`. All text is from outside."""

    job: str
    """Slurm's number, of an array that of the array; on Kubernetes `namespace/name`."""
    attempt: str
    """Differs between the starts of a job, and is the same for the parts of one start."""
    name: str = ""
    user: str = ""
    """Empty where the records have none."""
    team: str = ""
    nodes: tuple[str, ...]
    start: float
    """Seconds since 1970, by the clock of the scheduler."""
    end: float | None
    """None while it runs."""
    share: float = 1.0
    """Part of each of its nodes that others cannot have: of accelerators, CPUs or memory, the largest."""
    accelerators: float = 1.0
    """Part of the accelerators of each of its nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records of a scheduler."""

    place: str
    """Node and user that were asked, in a few words."""
    now: float
    """When it was asked, by the clock of the scheduler."""
    runs: tuple[Run, ...]
    groups: Mapping[str, str]
    """Node group by node; nodes that cannot be assigned are missing."""
    notes: tuple[str, ...] = ()
    """Sentences on what is missing or assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Hours of one user, team or job; or of what no job held."""

    kind: Literal["use", "idle", "service", "total"]
    """`idle`: compute nodes without a job. `service`: controllers, login and system nodes."""
    name: str
    """User, team or job; empty where the records have none."""
    job_name: str = ""
    """With `--by job`, as `user` and `team`."""
    user: str = ""
    team: str = ""
    jobs: int = 0
    """Tasks of an array are one job."""
    starts: int = 0
    """Starts in the time, requeues among them."""
    node_hours: float = 0.0
    accelerator_hours: float = 0.0
    usd: float | None = None
    """Sum of what has a price; None where nothing has."""
    not_priced_node_hours: float = 0.0
    """Node-hours whose price is not known: they are in no sum of money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Use of the nodes; USD at list prices, without tax and discounts, instances only."""

    environment: str
    place: str
    by: By
    since: datetime
    until: datetime
    """The end; the time of the question where that came first."""
    hours: float
    rows: tuple[UsageRow, ...]
    """The dearest first, then `idle` and `service`."""
    total: UsageRow
    """Cost of all nodes in the time: the sum of the rows."""
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Sum:
    """Hours of a row by node group."""

    nodes: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    accelerators: float = 0.0
    runs: list[Run] = field(default_factory=list[Run])


def usage(
    cluster: Cluster, found: Estimate, records: Records, since: datetime, until: datetime, by: By
) -> Usage:
    """Use of the nodes of an environment between two times.

    Args:
        found: the estimate, with the price of each node group.
        records: of its scheduler.
    """
    begin, end = since.timestamp(), max(since.timestamp(), min(until.timestamp(), records.now))
    runs = [one for one in records.runs if one.end is None or one.end >= one.start]
    notes = [*records.notes]
    if backwards := len(records.runs) - len(runs):
        notes.append(f"{backwards} starts end before they begin (clocks that differ): not counted")
    held, busy = _held(runs, records.groups, begin, end)
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    per_node = {name: _accelerators(cluster, name) for name in cluster.groups}
    for run, hours, accelerators in held:
        row = sums[getattr(run, by)]
        row.runs.append(run)
        for group, one in hours.items():
            row.nodes[group] += one
        row.accelerators += sum(accelerators[group] * per_node.get(group, 0) for group in hours)
    prices = _prices(cluster, found)
    rows = sorted(
        (_row(name, one, prices, by) for name, one in sums.items()),
        key=lambda row: (-(row.usd or 0), -row.node_hours, row.name),
    )
    whole = _whole(cluster, busy, (end - begin) / HOUR)
    rows += _rest(cluster, whole, sums.values(), per_node, prices)
    notes += _remarks(cluster, whole, found)
    return Usage(
        environment=cluster.name,
        place=records.place,
        by=by,
        since=datetime.fromtimestamp(begin, UTC),
        until=datetime.fromtimestamp(end, UTC),
        hours=(end - begin) / HOUR,
        rows=tuple(rows),
        total=_total(rows),
        notes=tuple(notes),
    )


Busy = dict[str, list[tuple[float, int]]]
"""By node group: when a node becomes busy (+1) or free (-1)."""
Held = list[tuple[Run, dict[str, float], dict[str, float]]]
"""Runs with node-hours and parts of accelerator-hours, each by node group."""


def _held(runs: Sequence[Run], groups: Mapping[str, str], begin: float, end: float) -> tuple[Held, Busy]:
    """Hours of each run on its nodes. Jobs that share a node never hold more than all of it together."""
    events: defaultdict[str, list[tuple[float, bool, int]]] = defaultdict(list)
    for number, run in enumerate(runs):
        first, last = max(begin, run.start), min(end, end if run.end is None else run.end)
        if first < last:
            for node in dict.fromkeys(run.nodes):
                events[node] += [(first, True, number), (last, False, number)]
    hours: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    parts: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    busy: Busy = {}
    for node, changes in events.items():
        group, active, before = groups.get(node, ""), set[int](), begin
        for at, begins, number in sorted(changes):
            if active and at > before:
                taken = max(1.0, sum(runs[one].share for one in active))
                drawn = max(1.0, sum(runs[one].accelerators for one in active))
                for one in active:
                    hours[one][group] += runs[one].share / taken * (at - before) / HOUR
                    parts[one][group] += runs[one].accelerators / drawn * (at - before) / HOUR
            was = bool(active)
            (active.add if begins else active.discard)(number)
            if was != bool(active):
                busy.setdefault(group, []).append((at, 1 if active else -1))
            before = at
    return [(runs[number], dict(one), dict(parts[number])) for number, one in hours.items()], busy


def _whole(cluster: Cluster, busy: Busy, hours: float) -> dict[str, float]:
    """Node-hours of each group: the nodes of its file at all times, and more while jobs held more."""
    whole: dict[str, float] = {}
    for group in {*cluster.groups, *busy}:
        count = cluster.groups[group].settings.count if group in cluster.groups else 0
        more, now, before = 0.0, 0, 0.0
        for at, step in sorted(busy.get(group, ())):
            more += max(0, now - count) * (at - before) / HOUR
            now, before = now + step, at
        whole[group] = count * hours + more
    return whole


def _rest(
    cluster: Cluster,
    whole: Mapping[str, float],
    sums: Iterable[_Sum],
    per_node: Mapping[str, int],
    prices: Mapping[str, float | None],
) -> Iterator[UsageRow]:
    """Rows of what no job held."""
    used, accelerators = defaultdict[str, float](float), 0.0
    for one in sums:
        accelerators += one.accelerators
        for group, hours in one.nodes.items():
            used[group] += hours
    compute = cluster.with_role("compute").keys() | (whole.keys() - cluster.groups.keys())
    idle, service = _Sum(), _Sum()
    for group, hours in whole.items():
        left = max(0.0, hours - used[group])
        (idle if group in compute or used[group] else service).nodes[group] = left
    idle.accelerators = max(
        0.0, sum(hours * per_node.get(group, 0) for group, hours in whole.items()) - accelerators
    )
    for kind, one in (("idle", idle), ("service", service)):
        yield replace(_row("", one, prices, "user"), kind=kind, jobs=0, starts=0)


def _row(name: str, one: _Sum, prices: Mapping[str, float | None], by: By) -> UsageRow:
    nodes = {group: hours for group, hours in one.nodes.items() if hours}
    known = [usd * hours for group, hours in nodes.items() if (usd := prices.get(group)) is not None]
    without = sum(hours for group, hours in nodes.items() if prices.get(group) is None)
    run = max(one.runs, key=lambda run: run.start) if by == "job" else None
    return UsageRow(
        kind="use",
        name=name,
        job_name=run.name if run else "",
        user=run.user if run else "",
        team=run.team if run else "",
        jobs=len({run.job for run in one.runs}),
        starts=len({(run.job, run.attempt) for run in one.runs}),
        node_hours=sum(nodes.values()),
        accelerator_hours=one.accelerators,
        usd=sum(known) if known or not nodes else None,
        not_priced_node_hours=without,
    )


def _total(rows: Sequence[UsageRow]) -> UsageRow:
    known = [row.usd for row in rows if row.usd is not None]
    return UsageRow(
        kind="total",
        name="",
        jobs=sum(row.jobs for row in rows),
        starts=sum(row.starts for row in rows),
        node_hours=sum(row.node_hours for row in rows),
        accelerator_hours=sum(row.accelerator_hours for row in rows),
        usd=sum(known) if known else None,
        not_priced_node_hours=sum(row.not_priced_node_hours for row in rows),
    )


def _prices(cluster: Cluster, found: Estimate) -> dict[str, float | None]:
    """USD per hour of one node of each group."""
    return {
        line.item.group: node_usd(cluster.groups[line.item.group], line)
        for line in found.lines
        if line.item.group
    }


def _accelerators(cluster: Cluster, group: str) -> int:
    known = cluster.groups[group].type
    return known.accelerator.count if known and known.accelerator else 0


def _remarks(cluster: Cluster, whole: Mapping[str, float], found: Estimate) -> Iterator[str]:
    yield (
        "Idle assumes that the nodes of the file stood the whole time, drained and failed ones among them: "
        "begin with --from when they came"
    )
    if elastic := [name for name, group in cluster.groups.items() if group.most_nodes > group.settings.count]:
        yield (
            f"Nodes of {', '.join(sorted(elastic))} beyond the count of the file are counted while jobs held "
            "them: the minutes before and after are not recorded"
        )
    prices = _prices(cluster, found)
    if missing := sorted(
        name for name, hours in whole.items() if name and hours and prices.get(name) is None
    ):
        yield f"Not priced: nodes of {', '.join(missing)}"
    if lost := whole.get("", 0):
        yield f"{lost:,.1f} node-hours are of nodes that belong to no group of the file: not priced"
    if marks := sorted(
        f"{line.item.group} ({line.mark})" for line in found.priced if line.item.group and line.mark
    ):
        yield f"Prices that are not their own of the last 90 days: {', '.join(marks)}"
    if prepaid := sorted(line.item.group for line in found.lines if line.item.group and line.prepaid):
        yield f"Paid upfront, used or not: {', '.join(prepaid)}"


__all__ = ["By", "Records", "Run", "Usage", "UsageRow", "usage"]
