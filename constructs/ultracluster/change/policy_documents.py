"""What a policy document grants and refuses, and what a change of it takes away.

Two documents are compared by meaning, not as text: a statement that moves, is split or gets another Sid
takes nothing away. Where it cannot be told (`NotAction`, conditions of an unknown kind) only what is equal
counts as still granted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, cast

from ultracluster.change.template import as_mapping, as_text
from ultracluster.config.file_text import json_of

_SETS: Final = frozenset({"StringEquals", "StringLike", "ArnEquals", "ArnLike", "StringEqualsIgnoreCase"})
"""Operators of which more values admit more."""
_MOST: Final = 1024
"""Parts of one statement, and comparisons in thousands, that are made one by one: above it, only what is
equal counts as still granted."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The smallest part of a statement: one principal, one action, one resource."""

    effect: str
    principal: str
    action: str
    resource: str
    condition: str
    """JSON with sorted keys."""


def grants(document: Any) -> list[Grant]:
    """Every part of a policy document; none where it is not one."""
    found: list[Grant] = []
    for statement in _statements(document):
        condition = _text(statement.get("Condition") or {})
        principals = _side(statement, "Principal", _principals) or [""]
        actions = _side(statement, "Action", _texts)
        resources = _side(statement, "Resource", _texts) or ["*"]
        effect = as_text(statement.get("Effect")) or "Allow"
        if len(principals) * len(actions) * len(resources) > _MOST:
            principals, actions, resources = [_text(principals)], [_text(actions)], [_text(resources)]
        found += [Grant(effect, *parts, condition) for parts in product(principals, actions, resources)]
    return found


def lost(before: Iterable[Grant], after: Iterable[Grant]) -> list[Grant]:
    """What was granted and is not any more: grants that are gone, and refusals that have come."""
    old, new = list(before), list(after)
    gone = _not_covered([one for one in old if one.effect == "Allow"], new)
    return gone + _not_covered([one for one in new if one.effect == "Deny"], old)


def in_words(found: list[Grant], most: int = 3) -> str:
    """The first of them, and how many more."""
    gone = _by_action([one for one in found if one.effect == "Allow"])
    come = [f"{words} is refused" for words in _by_action([one for one in found if one.effect == "Deny"])]
    words = gone + come
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _by_action(found: list[Grant]) -> list[str]:
    """`s3:GetObject on arn:aws:s3:::bucket/*`, or `s3:GetObject on 3 resources`."""
    by_action: dict[str, list[str]] = {}
    for one in found:
        resources = by_action.setdefault(one.action, [])
        if one.resource not in resources:
            resources.append(one.resource)
    return [
        f"{action} on {len(resources)} resources"
        if len(resources) > 1
        else action + (f" on {resources[0]}" if resources[0] != "*" else "")
        for action, resources in by_action.items()
    ]


def _not_covered(grants: list[Grant], by: list[Grant]) -> list[Grant]:
    equal = set(by)
    rest = [grant for grant in dict.fromkeys(grants) if grant not in equal]
    if len(rest) * len(by) > _MOST * 1000:
        return rest
    return [one for one in rest if not any(_covers(other, one) for other in by if other.effect == one.effect)]


def _covers(wide: Grant, narrow: Grant) -> bool:
    return (
        _matches(wide.action.lower(), narrow.action.lower())
        and _matches(wide.principal, narrow.principal)
        and _matches(wide.resource, narrow.resource)
        and _weaker(wide.condition, narrow.condition)
    )


def _matches(pattern: str, value: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == value
    return bool(_regex(pattern).fullmatch(value))


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", pattern)
    return re.compile("".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts), re.DOTALL)


@cache
def _weaker(wide: str, narrow: str) -> bool:
    """Whether every request that meets `narrow` meets `wide`, as far as that can be told."""
    if wide == narrow or wide == "{}":
        return True
    try:
        asked, given = as_mapping(json_of(wide)), as_mapping(json_of(narrow))
    except ValueError:
        return False
    for operator, keys in asked.items():
        there = as_mapping(given.get(operator))
        for key, value in as_mapping(keys).items():
            if key not in there:
                return False
            wanted, has = set(_texts(value)), set(_texts(there[key]))
            if not (has <= wanted if operator in _SETS else has == wanted):
                return False
    return True


def _statements(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, str):
        try:
            document = json_of(document)
        except ValueError:
            return
    found = as_mapping(document).get("Statement")
    for one in cast("list[Any]", found) if isinstance(found, list) else [found]:
        if isinstance(one, dict) and one:
            yield cast("dict[str, Any]", one)


def _side(statement: dict[str, Any], name: str, read: Any) -> list[str]:
    """`Action`, or `NotAction` as one part that only an equal one covers."""
    if (turned := f"Not{name}") in statement:
        return [f"{turned} {_text(sorted(read(statement[turned])))}".replace("*", "\u2217")]
    return list(dict.fromkeys(read(statement[name]))) if name in statement else []


def _principals(value: Any) -> list[str]:
    if not isinstance(value, dict) or not value:
        return ["*"] if value == "*" else _texts(value)
    kinds = cast("dict[str, Any]", value)
    found = [f"{kind}:{text}" for kind, ones in kinds.items() for text in _texts(ones)]
    return ["*" if one == "AWS:*" else one for one in found]


def _texts(value: Any) -> list[str]:
    """One or several values as texts."""
    if isinstance(value, list):
        return [text for one in cast("list[Any]", value) for text in _texts(one)]
    return [_text(value)]


def _text(value: Any) -> str:
    """A value as text; what is joined of texts and references reads like an ARN."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        name, inner = next(iter(cast("dict[str, Any]", value).items()))
        if name == "Ref" and isinstance(inner, str):
            return f"${{{inner}}}"
        if name == "Fn::GetAtt":
            parts = cast("list[Any]", inner) if isinstance(inner, list) else [inner]
            if all(isinstance(part, str) for part in parts):
                return f"${{{'.'.join(parts)}}}"
        if name == "Fn::ImportValue" and isinstance(inner, str):
            return f"${{{inner}}}"
        if name == "Fn::Sub" and isinstance(inner, str):
            return inner
        if name == "Fn::Join" and isinstance(inner, list) and len(cast("list[Any]", inner)) == 2:
            between, parts = cast("list[Any]", inner)
            if isinstance(between, str) and isinstance(parts, list):
                return between.join(_text(one) for one in cast("list[Any]", parts))
    return json.dumps(value, sort_keys=True, default=str)
