"""Facts of `change_facts.json` that say different things of one change; tests hold the table to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from ultracluster.change.changes import MISSING
from ultracluster.change.conditions import Scope, at, holds

Fact = dict[str, Any]


def contradictions(facts: Sequence[Fact]) -> list[str]:
    """One finding for each pair, which names both and what to do."""
    return list(dict.fromkeys(_found(facts)))


def _found(facts: Sequence[Fact]) -> Iterator[str]:
    for one, other in permutations(facts, 2):
        if one["type"] != other["type"] or one.get("path") != other.get("path") or "path" not in one:
            continue
        if one["verdict"] == other["verdict"] or not _both_speak(one, other):
            continue
        first, second = sorted((one, other), key=facts.index)
        yield (
            f"{one['type']} {one['path']}: {_words(first)}, and {_words(second)}: read both pages again, and "
            "keep the newer one or narrow a condition"
        )


def _both_speak(one: Fact, other: Fact) -> bool:
    """True where the second, by its condition, is also about the change that is the case of the first."""
    if "cases" not in one or "if" not in other:
        same = ("change", "where", "if")
        return "if" not in one and all(one.get(key) == other.get(key) for key in same)
    shared = one["cases"].get("with", {})
    old, new = ({**shared, **side} for side in one["cases"]["fits"])
    path = one["path"]
    before, after = (_nested(side) for side in (old, new))
    first, second = (at(side, path) if "[]" not in path else MISSING for side in (before, after))
    return holds(other["if"], Scope((), first, second, before, after))


def _nested(flat: Fact) -> Fact:
    whole: Fact = {}
    for path, value in flat.items():
        *above, last = path.split(".")
        here = whole
        for step in above:
            here = here.setdefault(step, {})
        here[last] = value
    return whole


def _words(fact: Fact) -> str:
    return f"`{fact['verdict']}`, {fact['reason']!r} ({fact['source']}, {fact['date']})"
