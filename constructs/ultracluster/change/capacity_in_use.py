"""Capacity that a new group shares with one that goes, which holds it until the new one is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from ultracluster.change.changes import MISSING, Pair, Ruling, Verdict, walk
from ultracluster.change.template import as_mapping

_IDS: Final = frozenset({"TrainingPlanArn", "CapacityReservationId", "CapacityReservationResourceGroupArn"})
_SOURCE: Final = (
    "SageMaker Developer Guide: Training plans; EC2 User Guide: Capacity Reservations (an instance "
    "is launched only while the reservation has room) (2026-11-22)"
)


def capacity_of(value: Any) -> set[str]:
    """Training plans and reservations that a part of a template names."""
    return set(_named(value))


def taken_over(pair: Pair, added: Any) -> Ruling | None:
    """The verdict on something new that takes capacity from what goes in the same change; else None.

    Args:
        added: the whole resource, or an element of one of its lists.
    """
    wanted = capacity_of(added)
    if not wanted:
        return None
    leaving = {name: held & wanted for name, held in _leaving(pair) if held & wanted}
    if not leaving:
        return None
    names = ", ".join(f"`{one}`" for one in sorted(leaving))
    capacity = ", ".join(sorted({one for held in leaving.values() for one in held}))
    text = (
        f"it takes its instances from {capacity}, which {names} holds until it is deleted, and that comes "
        "afterwards: where the capacity is fully used there is no room for both, and the deploy fails or "
        f"waits for hours. In two steps it works: deploy without {names} first, which ends its jobs, "
        "then with the new one"
    )
    return Ruling(Verdict.AT_RISK, text, _SOURCE)


def _leaving(pair: Pair) -> Iterator[tuple[str, set[str]]]:
    """What goes from the stack, or from the resource: its name, and the capacity that it names."""
    for name, resource in pair.before_all.items():
        if name not in pair.after_all:
            yield name, capacity_of(resource)
    if pair.before and pair.after:
        old, new = as_mapping(pair.before.get("Properties")), as_mapping(pair.after.get("Properties"))
        for steps, before, after in walk(old, new):
            if after is MISSING and steps and steps[-1].startswith("["):
                yield steps[-1].strip("[]"), capacity_of(before)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _named(one)
    for name, inner in as_mapping(value).items():
        if name in _IDS and isinstance(inner, str):
            yield inner
        else:
            yield from _named(inner)
