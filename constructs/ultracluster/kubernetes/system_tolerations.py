"""What pods on system nodes must tolerate, and where that stands in the values of charts and add-ons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ultracluster.config import Environment

Tolerations = list[dict[str, str]]

# what charts and add-ons tolerate by default, and a list of ours would take away
_USUAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def system_tolerations(environment: Environment) -> Tolerations:
    """The taints of all groups of role `system`, as tolerations; empty where none has any."""
    made: Tolerations = []
    for group in environment.groups("system").values():
        for taint in group.taints:
            if taint.effect == "PreferNoSchedule":
                continue
            same = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            one = {"key": taint.key, **same, "effect": taint.effect}
            if one not in made:
                made.append(one)
    return [_USUAL, *made] if made else []


def with_tolerations(
    values: Mapping[str, Any], keys: Iterable[str], tolerations: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Values with the tolerations at each of `keys`, as `controller.tolerations`; as they are without any."""
    result = dict(values)
    for key in keys if tolerations else ():
        *parents, last = key.split(".")
        place = result
        for parent in parents:
            inner = dict(cast("Mapping[str, Any]", place.get(parent, {})))
            place[parent] = inner
            place = inner
        place[last] = [dict(one) for one in tolerations]
    return result


__all__ = ["Tolerations", "system_tolerations", "with_tolerations"]
