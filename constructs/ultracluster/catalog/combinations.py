"""Pairs of features of which a page says whether they go together; `combinations.json` has the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, record

_document = partial(catalog_file, "combinations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature of an environment, and how its file shows it."""

    name: str
    title: str
    of: Literal["group", "orchestrator", "lustre"]
    """Owner of its setting."""
    where: Mapping[str, Any]
    """Conditions that are true of a group or an orchestrator that has it (rules/conditions.py)."""
    key: str = ""
    """Its setting; empty where it is none of its own."""
    instead: Any = None
    """Value of the setting without the feature; None: the setting is left out."""
    ask: str = ""
    """Decision for a person where no value ends it."""
    choose: tuple[str, ...] = ()
    """Names in `ultracluster choose` that need it: optional features, questions and capacities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two features, and the verdict of a page on both together."""

    at: Feature
    other: Feature
    on: tuple[str, ...]
    """Orchestrators."""
    verdict: Literal["refused", "discouraged", "allowed"]
    rule: str
    """Id of the rule with that verdict; empty where it is allowed."""
    by_hand: bool
    """The rule has code of its own."""
    why: str
    undo: tuple[Feature, ...]
    note: str = ""
    source: str
    date: str

    @property
    def in_one_group(self) -> bool:
        """They meet in one group only: other groups may have the one or the other."""
        return self.at.of == self.other.of == "group"


@cache
def features() -> Mapping[str, Feature]:
    """All features by name."""
    return {name: record(Feature, row, name=name) for name, row in _document()["features"].items()}


@cache
def pairs() -> tuple[Pair, ...]:
    """All pairs that a page speaks of."""
    return tuple(_pair(row) for row in _document()["rows"])


def pair_rules() -> Mapping[str, tuple[Literal["error", "warning"], str, tuple[Pair, ...]]]:
    """Severity, title and pairs of each rule that is made of pairs, by its id."""
    return {
        name: (
            row["severity"],
            row["title"],
            tuple(pair for pair in pairs() if pair.rule == name and not pair.by_hand),
        )
        for name, row in _document()["rules"].items()
    }


def unknown_pairs() -> Mapping[str, tuple[int, int]]:
    """By orchestrator: how many pairs of its features no page speaks of, and how many pairs there are."""
    return dict(_unknown())


def _unknown() -> Iterator[tuple[str, tuple[int, int]]]:
    for orchestrator in sorted({one for pair in pairs() for one in pair.on}):
        known = {frozenset((p.at.name, p.other.name)) for p in pairs() if orchestrator in p.on}
        names = {name for two in known for name in two}
        every = {frozenset(two) for two in combinations(sorted(names), 2)}
        yield orchestrator, (len(every - known), len(every))


def _pair(row: Mapping[str, Any]) -> Pair:
    return record(
        Pair,
        row,
        at=features()[row["at"]],
        other=features()[row["with"]],
        rule=row.get("rule") or row.get("code", ""),
        by_hand="code" in row,
        undo=tuple(features()[name] for name in row.get("undo", (row["at"],))),
    )
