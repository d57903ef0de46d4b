"""The tables: `create_only.json` and `update_requires.json` are what CloudFormation publishes, in
schemas and on pages; `change_facts.json` is what it does not say; `kubernetes_facts.json` is of objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from ultracluster.change.changes import MISSING, Pair, Ruling, Steps, Verdict, in_order
from ultracluster.change.conditions import Scope, filled, holds, value_of
from ultracluster.change.template import Json, as_mapping

UPDATES: Final = ("none", "some", "replacement", "unsupported")
"""Answers of a page, in the words of update_requires.json."""


def create_only(kind: str) -> dict[str, list[str]] | None:
    """What is set at creation `always` or `sometimes`; None if the type is not in the table."""
    return _create_only()["types"].get("AWS::CloudFormation::CustomResource" if is_custom(kind) else kind)


def update_requires(kind: str, steps: Steps) -> tuple[str, str] | None:
    """The answer of a type's page to a change of a property, and its source; None if it says nothing.

    A row of an object is for the object as a whole: a property of it has a row of its own, or is unknown.
    """
    document = _update_requires()
    names = [step for step in steps if not step.startswith("[")]
    for row in document["by_hand"]:
        if row["type"] == kind and (path := row["path"].split(".")) == names[: len(path)]:
            return row["update"], f"{row['source']} ({row['date']})"
    properties: Json = document["types"].get(kind, {})
    word = None
    for name in names:
        word = next((word for word in UPDATES if name in properties.get(word, ())), None)
        inner = properties.get("within", {}).get(name)
        if word is None or inner is None:
            break
        properties = inner
    about = document["about"]
    return (word, f"{about['source']} ({about['date']})") if word else None


def is_custom(kind: str) -> bool:
    """Whether a function of the stack is behind the type."""
    return kind.startswith("Custom::")


def create_only_source() -> str:
    """Where the table comes from."""
    return _create_only()["about"]["source"]


def is_among(rows: list[str] | tuple[str, ...], steps: Steps) -> bool:
    """Whether one of the schema's paths is the changed one, lies above it or below it."""
    names = [step for step in steps if not step.startswith("[")]
    for row in rows:
        parts = [part for part in row.split("/") if part != "*"]
        length = min(len(parts), len(names))
        if parts[:length] == names[:length]:
            return True
    return False


def fact_about(
    kind: str,
    steps: Steps,
    before: Any,
    after: Any,
    properties: Json,
    until_now: Json | None = None,
    pair: Pair | None = None,
) -> Ruling | None:
    """The first fact that fits; where it says that AWS refuses the change, all conditions that do.

    Args:
        properties: all those of the new resource.
        until_now: all those of the old one.
        pair: the resource, for facts about its parent or children.
    """
    scope = Scope(steps, before, after, until_now or {}, properties, _relatives(pair))
    found = [fact for fact in _facts_of(kind) if _applies(fact, scope)]
    if found and found[0]["verdict"] == Verdict.REFUSED:
        others = [fact for fact in found[1:] if fact["verdict"] == Verdict.REFUSED and "if" in fact]
        return _joined([_ruling(fact, scope) for fact in (found[0], *others)])
    return _ruling(found[0], scope) if found else None


def _relatives(pair: Pair | None) -> Callable[[str], Iterable[tuple[Json, Json]]]:
    if pair is None or pair.around is None:
        return lambda _: ()
    around, stack, logical_id = pair.around, pair.stack, pair.logical_id
    return lambda kind: around.relatives(stack, logical_id, kind)


def _ruling(fact: Json, scope: Scope) -> Ruling:
    values = {"old": value_of("old", scope), "new": value_of("new", scope)}
    values |= {name: value_of(term, scope) for name, term in fact.get("values", {}).items()}
    apart = [step for path, step in fact.get("apart", {}).items() if holds(["changes", path], scope)]
    order = [line for step in apart or fact.get("order", ()) for line in filled(step, values)]
    return Ruling(
        Verdict(fact["verdict"]),
        next(iter(filled(fact["reason"], values)), fact["reason"]),
        f"{fact['source']} ({fact['date']})",
        part=fact.get("part", False),
        overrides=fact.get("overrides", False),
        order=tuple(order),
    )


def _joined(rulings: list[Ruling]) -> Ruling:
    """One ruling with every reason, and the order of the last, which holds the changes apart."""
    first, *others = rulings
    if not others:
        return first
    reasons = [f"{ruling.reason}{in_order(ruling.order)}" for ruling in rulings[:-1]] + [rulings[-1].reason]
    sources = dict.fromkeys(ruling.source for ruling in rulings)
    earlier = tuple(step for ruling in rulings[:-1] for step in ruling.order)
    return replace(
        first,
        reason=". And: ".join(reasons),
        source="; ".join(sources),
        order=rulings[-1].order,
        earlier=earlier,
    )


def has_facts(kind: str) -> bool:
    """True if any fact is about the type."""
    return bool(_facts_of(kind))


def used_by_jobs(kind: str) -> str:
    """What running jobs lose with a resource of this type although its data stay; empty if nothing."""
    return _facts()["used_by_jobs"].get(kind, "")


def has_snapshots(kind: str) -> bool:
    """Whether CloudFormation can keep a last snapshot of such a resource."""
    return kind in _facts()["snapshots"]["types"]


def name_property(kind: str) -> str | None:
    """The property that is the resource's own name, which no two of them may have."""
    return _facts()["names"]["properties"].get(kind)


def name_scope(kind: str) -> str | None:
    """The property that holds the parent within which the name is its own."""
    return _facts()["names"]["within"].get(kind)


def moving_attributes(kind: str) -> list[str]:
    """Attributes that have another value after an update in place, such as the newest version."""
    return _facts()["moving_attributes"]["attributes"].get(kind, [])


def _applies(fact: Json, scope: Scope) -> bool:
    steps, before, after = scope.steps, scope.before, scope.after
    properties, until_now = scope.new, scope.old
    pattern = _pattern(fact["path"])
    whole = not steps  # the resource comes or goes: only facts about the resource as a whole
    if (whole and pattern) or (whole and "change" not in fact):
        return False
    if not whole and not pattern and "change" in fact:
        return False
    if not _below(pattern, steps):
        return False
    how = fact.get("change")
    if how in ("added", "removed"):
        side, absent = (before, until_now) if how == "added" else (after, properties)
        # of an element of a list: the element itself, not a property of it
        if side is not MISSING:
            return False
        if len(pattern) != len(steps) and (not pattern or _has(absent, pattern)):
            return False
    if how in ("fewer", "more") and not _lists_become(how, before, after):
        return False
    if how in ("increased", "decreased"):
        old, new = _number(before), _number(after)
        if old is None or new is None or not (new > old if how == "increased" else new < old):
            return False
    if not all(_at(properties, path) in values for path, values in fact.get("where", {}).items()):
        return False
    return "if" not in fact or holds(fact["if"], scope)


def _has(properties: Json, pattern: Steps) -> bool:
    """Whether there is something at a path; of an element of a list that cannot be told."""
    value: Any = properties
    for name in pattern:
        if name == "[]":
            return True
        if name not in (inner := as_mapping(value)):
            return False
        value = inner[name]
    return True


def _lists_become(how: str, before: Any, after: Any) -> bool:
    """Whether elements of a list go (`fewer`, whatever comes), or only come (`more`)."""
    if not all(one is MISSING or isinstance(one, list) for one in (before, after)):
        return False
    old, new = (_texts(side) for side in (before, after))
    gone = any(one not in new for one in old)
    return gone if how == "fewer" else not gone and any(one not in old for one in new)


def _texts(value: Any) -> list[str]:
    elements = cast("list[Any]", value) if isinstance(value, list) else []
    return [json.dumps(element, sort_keys=True, default=str) for element in elements]


def _below(pattern: Steps, steps: Steps) -> bool:
    """Whether the steps are the pattern's, or lead further down."""
    return len(pattern) <= len(steps) and all(
        part == step or (part == "[]" and step.startswith("["))
        for part, step in zip(pattern, steps, strict=False)
    )


@cache
def _pattern(path: str) -> Steps:
    return tuple(path.replace("[", ".[").split(".")) if path else ()


def _number(value: Any) -> tuple[float, ...] | None:
    """Figures to compare: 16, "20", and "1.33", which is more than "1.4"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (value,)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9}){0,3}", value):
        return tuple(int(part) for part in value.split("."))
    return None


def _at(properties: Json, path: str) -> Any:
    value: Any = properties
    for name in path.split("."):
        value = as_mapping(value).get(name)
    return value


@cache
def _facts_of(kind: str) -> tuple[Json, ...]:
    facts = (_kubernetes_facts() if kind.startswith("Kubernetes::") else _facts())["facts"]
    return tuple(one for fact in facts if fact["type"] == kind for one in _each_apart(fact))


def _each_apart(fact: Json) -> Iterator[Json]:
    """A fact about properties that only change one after the other is one about each of them."""
    paths = list(fact.get("apart", ()))
    if not paths:
        yield fact
    for path in paths:
        others = ["changes", *(other for other in paths if other != path)]
        yield {**fact, "path": path, "if": ["all", others, fact["if"]] if "if" in fact else others}


@cache
def _facts() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("change_facts.json").read_text(encoding="utf-8"))


@cache
def _kubernetes_facts() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("kubernetes_facts.json").read_text(encoding="utf-8"))


@cache
def _update_requires() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("update_requires.json").read_text(encoding="utf-8"))


@cache
def _create_only() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("create_only.json").read_text(encoding="utf-8"))
