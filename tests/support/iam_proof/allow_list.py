"""The allow-list of rights: each that a template gives needs a row, and each row something that uses it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from project import ROOT

from iam_proof.resolved import ACCOUNT
from iam_proof.rights import Conditions, Right, many
from ultracluster.config import Environment

FOLDER = ROOT / "tests" / "security" / "rights"
WORD = re.compile(r"(?<!\$)\{([^{}]+)\}")
NARROWING = re.compile(
    r"^(For(All|Any)Values?:)?(String(Equals(IgnoreCase)?|Like)|Arn(Equals|Like))(IfExists)?$"
)
"""Operators of which fewer values allow less."""
Names = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A line of `tests/security/rights/`; README.md there explains the fields."""

    file: str
    sid: str
    roles: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Conditions
    need: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.sid} of {self.roles[0]}{' ...' if self.roles[1:] else ''}"


class AllowList:
    """Rows, asked about rights of one environment after another."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._met: set[tuple[Row, str]] = set()
        self._by_role: dict[str, list[Row]] = {}
        for row in rows:
            for role in row.roles:
                self._by_role.setdefault(role, []).append(row)

    def findings(self, rights: Iterable[Right], names: Names) -> list[str]:
        """What roles may do and no row allows, in words.

        Args:
            rights: of an environment.
            names: what words in rows mean there (`names_of_file`).
        """
        return [one for right in rights for one in self._of(right, names)]

    def unused(self, rows: Iterable[Row]) -> list[str]:
        """Parts of rows that no right which was asked about has."""
        return [
            f"{row}: no template has {part}"
            for row in rows
            for part in _parts(row)
            if (row, part) not in self._met
        ]

    def _of(self, right: Right, names: Names) -> Iterator[str]:
        mine: Names = {**names, "self": frozenset({right.itself})}
        if right.unusual:
            yield f"{right.role} has a statement with {right.unusual} ({right.sid}): no row can allow it"
            return
        left = set(itertools.product(right.actions, right.resources))
        near = ""
        # statements may say the same twice: each is its own row's
        for row in sorted(
            self._by_role.get(right.role, ()), key=lambda one: not fnmatchcase(right.sid, one.sid)
        ):
            pairs = {
                (action, resource): pattern
                for action in right.actions.intersection(row.actions)
                for resource in right.resources
                for pattern in row.resources
                if _same(pattern, resource, mine)
            }
            if not pairs.keys() & left:
                continue
            if (values := _within(right.conditions, row.conditions, mine)) is None:
                near = f"; {row} allows it under other conditions"
                continue
            left -= pairs.keys()
            label = {row.sid} if fnmatchcase(right.sid, row.sid) else set[str]()
            used = {*label, right.role, *(action for action, _ in pairs), *pairs.values(), *values}
            self._met |= {(row, one) for one in used}
        for action, resource in sorted(left):
            yield f"{right.role} may {action} on {resource} ({right.sid}): no row allows it{near}"


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in their order."""
    return tuple(
        _row(file, one) for file in sorted(FOLDER.glob("*.yaml")) for one in _read(file).get("rows", ())
    )


@cache
def needs() -> dict[str, dict[str, Any]]:
    """What rows name under `need`, by name."""
    return {
        name: one
        for file in sorted(FOLDER.glob("*.yaml"))
        for name, one in _read(file).get("needs", {}).items()
    }


def names_of_file(config: Environment) -> Names:
    """What rows call `{name}`, `{region}`, `{account}`, and `{file:field}` for values that the file names."""
    found: dict[str, set[str]] = {
        "name": {config.name},
        "region": {config.region},
        "account": {config.account or ACCOUNT},
        # CloudFormation ends names that it makes after so many characters of the stack's
        "control_plane_begins": {f"{config.name}-control-plane"[:20]},
    }
    for path, value in _leaves(config.model_dump(mode="json", warnings=False)):
        plain = value.removeprefix("s3://").rstrip("/")
        found.setdefault(f"file:{path}", set()).add(plain)
        if plain != value:
            found.setdefault(f"file:{path}.bucket", set()).add(plain.partition("/")[0])
    return {name: frozenset(values) for name, values in found.items()}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path of the field without numbers and names of maps' entries, text)."""
    match value:
        case str():
            yield path, value
        case list():
            for one in value:
                yield from _leaves(one, path)
        case dict():
            for key, one in value.items():
                yield from _leaves(one, f"{path}.{key}".removeprefix("."))
        case _:
            pass


@cache
def _pattern(text: str) -> list[str]:
    return WORD.split(text)


def _same(text: str, found: str, names: Names) -> bool:
    """Whether a template's text is what a row says: `*` is a character, but for the one in `{stack.Id*}`."""
    if "{" not in text:
        return text == found
    parts = _pattern(text)
    made = [re.escape(part) if number % 2 == 0 else _word(part, names) for number, part in enumerate(parts)]
    return re.fullmatch("".join(made), found) is not None


def _word(word: str, names: Names) -> str:
    if word.startswith("file:"):
        tail = word.removeprefix("file:")
        values = {
            one
            for name, some in names.items()
            if name.startswith("file:") and f".{name[5:]}".endswith(f".{tail}")
            for one in some
        }
        return f"(?:{'|'.join(map(re.escape, sorted(values)))})" if values else "(?!)"
    if word == "digest":
        return "[0-9a-f]{64}"
    if word in names:
        return f"(?:{'|'.join(map(re.escape, sorted(names[word])))})"
    return re.escape(f"{{{word}}}").replace(r"\*", "[^{}]*")


def _within(found: Conditions, row: Conditions, names: Names) -> set[str] | None:
    """The row's values that the conditions of a right have; None where they allow more, or are others."""
    if {(one, key) for one, about in found.items() for key in about} != {
        (one, key) for one, about in row.items() for key in about
    }:
        return None
    used: set[str] = set()
    for operator, about in row.items():
        for key, said in about.items():
            values = found[operator][key]
            met = {text: [one for one in values if _same(text, one, names)] for text in said}
            if {one for some in met.values() for one in some} != values:
                return None
            if not NARROWING.match(operator) and not all(met.values()):
                return None
            used |= {f"{operator} {key} {text}" for text, some in met.items() if some}
    return used


def _parts(row: Row) -> Iterator[str]:
    yield row.sid
    yield from (*row.roles, *row.actions, *row.resources)
    for operator, about in row.conditions.items():
        yield from (f"{operator} {key} {text}" for key, said in about.items() for text in sorted(said))


def _row(file: Path, one: Mapping[str, Any]) -> Row:
    return Row(
        file=file.name,
        sid=one["sid"],
        roles=tuple(role for word in one["roles"].split() for role in expanded(word)),
        actions=tuple(one["actions"].split()),
        resources=tuple(many(one["resources"])),
        conditions={
            operator: {key: frozenset(map(str, many(said))) for key, said in about.items()}
            for operator, about in one.get("conditions", {}).items()
        },
        need=tuple(one["need"].split()),
    )


def expanded(word: str) -> list[str]:
    """`a/{b,c}` as `a/b` and `a/c`."""
    parts = [part.split(",") for part in re.split(r"[{}]", word)]
    return ["".join(one) for one in itertools.product(*parts)]


@cache
def _read(file: Path) -> dict[str, Any]:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}
