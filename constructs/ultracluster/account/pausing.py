"""Pause and resume of an environment as plans: the steps in their order, and what stops them.

Pure functions of what was read: nothing is asked or changed here. Compute nodes end; storage, the control
plane and login nodes stay, and continue to cost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Literal

from ultracluster.model import Cluster
from ultracluster.model.cluster import Group

StepKind = Literal["mark", "drain", "wait", "scale", "undrain", "unmark"]
COMMITTED = ("reservation", "capacity-block", "training-plan")
"""Kinds of capacity that are paid for while no node uses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Call that scales one kind of nodes to zero."""

    call: str
    whole: bool = False
    """All groups at once, none alone."""
    shape: str = ""
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that runs."""

    id: str
    user: str
    groups: tuple[str, ...]
    checkpoint: datetime | None = None
    """Time of the last one; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The record of a pause, which is stored before anything is scaled."""

    by: str
    at: datetime | None
    """None until it is stored."""
    counts: Mapping[str, int]
    """Nodes that each group was asked for before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """State of the account and the scheduler, as it was read."""

    counts: Mapping[str, int | None]
    """Nodes that the service is asked for, by group; None: it could not be read."""
    asked_by: str
    """Person who pauses or resumes."""
    jobs: tuple[Job, ...] = ()
    at_work: tuple[str, ...] = ()
    """Stacks that change, in words."""
    paused: Pause | None = None
    paid: Mapping[str, float] = field(default_factory=dict[str, float])
    """USD that were paid upfront for the capacity of a group, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: StepKind
    text: str
    group: str = ""
    """Empty where the step is about all of them."""
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps, or why there are none."""

    steps: tuple[Step, ...] = ()
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    mark: Pause | None = None
    """Record that the first step stores, or that was stored before."""


@cache
def ways() -> Mapping[str, Way]:
    """Ways of scaling nodes to zero, by kind of nodes."""
    text = resources.files("ultracluster.account").joinpath("pause_ways.json").read_text("utf-8")
    return {name: Way(**row) for name, row in json.loads(text)["ways"].items()}


def way_of(group: Group) -> Way:
    """The way of a group."""
    if group.by_karpenter:
        return ways()["karpenter"]
    return ways()["hyperpod" if group.in_service else group.launcher]


def pause(
    cluster: Cluster, seen: Seen, *, groups: Collection[str] | None = None, named: Collection[str] = ()
) -> Plan:
    """Plan of a pause.

    Args:
        groups: compute groups; all of them by default.
        named: groups of committed capacity that are paused in spite of what was paid.
    """
    compute = cluster.with_role("compute")
    chosen = [name for name in compute if groups is None or name in groups]
    refusals = [*_stops(seen), *_unknown(compute, [*(groups or ()), *named])]
    if seen.paused and seen.paused.by != seen.asked_by:
        refusals.append(f"{_who(seen.paused)}: resume it first")
    before = dict(seen.paused.counts) if seen.paused else {}
    for name in chosen:
        count = before.get(name, seen.counts.get(name))
        if count is None:
            refusals.append(f"{name}: how many nodes it is asked for is not known, and resume would need it")
        elif count:
            before[name] = count
            refusals += _committed(compute[name], seen, named)
    chosen = [name for name in chosen if before.get(name)]
    whole = [name for name in chosen if way_of(compute[name]).whole]
    if left := [name for name in compute if whole and name not in chosen and seen.counts.get(name) != 0]:
        refusals.append(f"the fleet stops as a whole, with {', '.join(left)}: pause all groups")
    if refusals:
        return Plan(refusals=tuple(refusals))
    mark = Pause(by=seen.asked_by, at=seen.paused.at if seen.paused else None, counts=before)
    return Plan(
        steps=tuple(_down(compute, chosen, mark, seen)) if chosen else (),
        warnings=tuple(_may_not_return(compute[name]) for name in chosen),
        mark=mark,
    )


def resume(cluster: Cluster, seen: Seen) -> Plan:
    """Plan of a resume, by whoever may: it asks for what there was before the pause."""
    refusals = list(_stops(seen))
    if not seen.paused:
        refusals.append(f"{cluster.name} is not paused: nothing says how many nodes there were")
    if refusals or not seen.paused:
        return Plan(refusals=tuple(refusals))
    compute, steps, warnings = cluster.with_role("compute"), list[Step](), list[str]()
    for name, count in seen.paused.counts.items():
        if name not in compute:
            warnings.append(f"{name}: the file has no such group any more, and it is left alone")
        elif not way_of(compute[name]).whole:
            steps.append(_scale(compute[name], count))
        file = compute[name].settings.count if name in compute else count
        if file != count:
            warnings.append(f"{name}: {count} before the pause, {file} in the file: deploy changes it")
    if any(way_of(compute[name]).whole for name in seen.paused.counts if name in compute):
        steps.append(
            Step(kind="scale", text="start the fleet: pcluster update-compute-fleet --status START_REQUESTED")
        )
    steps.append(Step(kind="undrain", text="let jobs start again when nodes are ready"))
    steps.append(Step(kind="unmark", text="remove the record of the pause"))
    return Plan(steps=tuple(steps), warnings=tuple(warnings), mark=seen.paused)


def _who(mark: Pause) -> str:
    when = f" at {mark.at:%Y-%m-%d %H:%M} UTC" if mark.at else ""
    return f"{mark.by} paused it{when}"


def _stops(seen: Seen) -> Iterator[str]:
    for one in seen.at_work:
        yield f"{one}: a deploy changes the same groups. Wait until it has ended"


def _unknown(compute: Mapping[str, Group], words: Collection[str]) -> Iterator[str]:
    for word in words:
        if word not in compute:
            yield f"there is no compute group `{word}`: {', '.join(compute)}"


def _committed(group: Group, seen: Seen, named: Collection[str]) -> Iterator[str]:
    kind = group.capacity.kind
    if kind not in COMMITTED or group.name in named:
        return
    usd = seen.paid.get(group.name)
    paid = "what was paid is not known" if usd is None else f"{usd:,.2f} USD were paid upfront"
    yield f"{group.name}: its {kind} continues to cost while no node uses it ({paid}): name it to pause it"


def _down(compute: Mapping[str, Group], chosen: Collection[str], mark: Pause, seen: Seen) -> Iterator[Step]:
    if not seen.paused or seen.paused.counts != mark.counts:
        yield Step(kind="mark", text="store how many nodes each group is asked for")
    for name in chosen:
        yield Step(kind="drain", group=name, text=f"{name}: no further job starts")
    jobs = [job for job in seen.jobs if set(job.groups) & {*chosen}]
    if jobs:
        listed = ", ".join(
            f"{job.id} of {job.user} ("
            + (
                f"checkpoint of {job.checkpoint:%Y-%m-%d %H:%M} UTC"
                if job.checkpoint
                else "no checkpoint known"
            )
            + ")"
            for job in jobs
        )
        yield Step(
            kind="wait", text=f"until these jobs end, or have a checkpoint of after the drain: {listed}"
        )
    for name in chosen:
        if not way_of(compute[name]).whole:
            yield _scale(compute[name], 0)
    if whole := next((way for name in chosen if (way := way_of(compute[name])).whole), None):
        yield Step(kind="scale", count=0, text=whole.call)


def _scale(group: Group, count: int) -> Step:
    call = way_of(group).call
    return Step(
        kind="scale",
        group=group.name,
        count=count,
        text=f"{group.name}: {count} nodes, by {call.split(',')[0]}",
    )


def _may_not_return(group: Group) -> str:
    if group.capacity.kind in COMMITTED:
        return f"{group.name}: its {group.capacity.kind} is kept, until it ends"
    return (
        f"{group.name}: EC2 keeps no capacity {group.capacity.kind}, so its nodes may not come back at once"
    )


__all__ = ["Job", "Pause", "Plan", "Seen", "Step", "Way", "pause", "resume", "way_of", "ways"]
