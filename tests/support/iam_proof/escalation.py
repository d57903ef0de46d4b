"""Ways to more rights in two steps, searched for in what a role may do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import yaml
from project import ROOT

from iam_proof.allow_list import expanded
from iam_proof.rights import Right
from ultracluster.config import Environment

FILE = ROOT / "tests" / "security" / "escalation.yaml"
OF_A_TAG = re.compile(r"(?i)^(?:aws|[a-z0-9-]+):ResourceTag/(?P<tag>.+)$")

OF_A_KIND = re.compile(r"^arn:aws:(?!s3:)[a-z0-9-]+:[^:]*:[^:]*:[a-z-]+[/:]\*$")
"""All resources of one type."""


@dataclass(frozen=True, slots=True)
class Way:
    """Two statements of a role that together give more than either says.

    Attributes:
        pair: row of the table of pairs.
        role: who has both.
        first, then: statement ids of the steps; the latter is `-` where others take it.
    """

    pair: str
    role: str
    first: str
    then: str

    def matches(self, other: Way) -> bool:
        """Whether another is this one, whose role may hold `*`."""
        return fnmatchcase(other.role, self.role) and replace(other, role=self.role) == self


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Ways that are there, and why."""

    pair: str
    roles: Sequence[str]
    first: Sequence[str]
    then: Sequence[str]
    why: str
    page: str

    def ways(self) -> list[Way]:
        return [Way(self.pair, *one) for one in itertools.product(self.roles, self.first, self.then)]

    def covers(self, way: Way) -> bool:
        return any(one.matches(way) for one in self.ways())

    def unused(self, there: Iterable[Way]) -> set[str]:
        """Roles and statements of the row that no way has."""
        met = [(mine, way) for way in there for mine in self.ways() if mine.matches(way)]
        used = {text for mine, _ in met for text in (mine.role, mine.first, mine.then)}
        return {*self.roles, *self.first, *self.then} - used


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A row of `escalation.yaml`, which explains the fields."""

    pair: str
    first: Sequence[str]
    then: Sequence[str]
    stops: Sequence[str]
    passed_to: str
    resources: str


@cache
def pairs() -> tuple[Pair, ...]:
    return tuple(
        Pair(
            pair=one["pair"],
            first=one["first"].split(),
            then=one.get("then", "").split(),
            stops=one.get("stops", "").split(),
            passed_to=one.get("passed_to", ""),
            resources=one.get("resources", "*"),
        )
        for one in table()["pairs"]
    )


@cache
def accepted() -> tuple[Accepted, ...]:
    return tuple(
        Accepted(
            pair=one["pair"],
            roles=[role for word in one["roles"].split() for role in expanded(word)],
            first=one["steps"].split()[0].split("|"),
            then=one["steps"].split()[1].split("|"),
            why=one["why"],
            page=one.get("page", ""),
        )
        for one in table()["accepted"]
    )


@cache
def table() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def ways(rights: Iterable[Right], config: Environment) -> set[Way]:
    """All that the roles of an environment have."""
    by_role: dict[str, list[Right]] = {}
    for one in rights:
        by_role.setdefault(one.role, []).append(one)
    return {
        Way(name, role, first.sid, then.sid if then else "-")
        for role, mine in by_role.items()
        for name, first, then in (*_by_pairs(mine), *_by_tags(mine), *_of_all(mine, config))
    }


def _by_pairs(mine: Sequence[Right]) -> Iterator[tuple[str, Right, Right | None]]:
    for pair in pairs():
        for first in mine:
            taken = _any(first.actions, pair.first)
            keys = {key for about in first.conditions.values() for key in about}
            if not taken or keys.intersection(pair.stops):
                continue
            if not any(fnmatchcase(one, pair.resources) for one in first.resources):
                continue
            if pair.passed_to and not _passes(first, pair.passed_to):
                continue
            if not pair.then:
                yield pair.pair, first, None
            yield from ((pair.pair, first, one) for one in mine if _any(one.actions, pair.then))


def _passes(right: Right, service: str) -> bool:
    """Whether a role that is not itself may be passed to a service."""
    others = {one for one in right.resources if one.rpartition("/")[2] != right.itself}
    services = [
        values for about in right.conditions.values() for values in [about.get("iam:PassedToService")]
    ]
    return bool(others) and (
        service == "*" or not any(services) or any(values and service in values for values in services)
    )


def _by_tags(mine: Sequence[Right]) -> Iterator[tuple[str, Right, Right | None]]:
    """Give a thing a tag, then do what the tag allows."""
    tagging: Mapping[str, str] = table()["tagging"]
    for first in mine:
        for action in first.actions & tagging.keys():
            keys = {key for about in first.conditions.values() for key in about}
            if tagging[action] in keys:
                continue  # only while the thing is made
            for then in mine:
                for tag in _tags(then) if then is not first else ():
                    if _overlap(first, then) and _may_give(first, tag):
                        yield "tag, then act by the tag", first, then


def _of_all(mine: Sequence[Right], config: Environment) -> Iterator[tuple[str, Right, Right | None]]:
    """A tag that things of every cluster have, and what has no bound but the account."""
    for one in mine:
        writes = {action for action in one.actions if not _any([action], table()["reads"].split())}
        if not writes:
            continue
        bounds = [
            text
            for operator, about in one.conditions.items()
            if not operator.endswith("IfExists")  # what has no such tag is everybody's
            for key, values in about.items()
            for text in (key, *values)
        ]
        ours = rf"(?<![\w-]){re.escape(config.name)}(?![\w-])|\{{[\w-]+\."
        if _tags(one) and not any(re.search(ours, text) for text in bounds):
            yield "a tag that every cluster gives", one, None
        if not one.conditions and "*" in one.resources:
            yield "a write on everything", one, None
        if not one.conditions and any(OF_A_KIND.match(text) for text in one.resources):
            yield "a write on all things of a kind", one, None


def _tags(right: Right) -> set[str]:
    """Tags of the resource that a right asks for, or must not be missing."""
    found = (OF_A_TAG.match(key) for about in right.conditions.values() for key in about)
    return {one["tag"] for one in found if one}


def _may_give(first: Right, tag: str) -> bool:
    """Whether a right to tag may give this tag to what has none."""
    for operator, about in first.conditions.items():
        for key, values in about.items():
            named = OF_A_TAG.match(key)
            # what must have it already gets nothing new; with IfExists, what has none does
            if (
                named
                and named["tag"] == tag
                and operator in ("StringEquals", "StringLike", "ArnEquals", "ArnLike")
            ):
                return False
            all_tags = key == "aws:TagKeys" and operator.startswith("ForAllValues:")
            if all_tags and not any(fnmatchcase(tag, one) for one in values):
                return False
            if operator == "Null" and key == f"aws:RequestTag/{tag}" and values == {"true"}:
                return False
    return True


def _overlap(first: Right, then: Right) -> bool:
    """Whether both are about one type of resource."""
    kinds = [{_kind(one) for one in right.resources} for right in (first, then)]
    return bool(kinds[0] & kinds[1]) or any(("*", "*") in one for one in kinds)


def _kind(resource: str) -> tuple[str, str]:
    parts = resource.split(":")
    if len(parts) < 6:
        return "*", "*"
    return parts[2], re.split(r"[/:]", parts[5])[0]


def _any(actions: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(action, pattern) for action in actions for pattern in patterns)
