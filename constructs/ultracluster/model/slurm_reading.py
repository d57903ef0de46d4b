"""Slurm's own reading of its files: what its parser and its daemons refuse, for a release.

The facts are `catalog/slurm_keys.json` and `catalog/slurm_refusals.json`, both from Slurm's sources. What
cannot be judged passes: a release that is not known here, and a combination with a value that a service sets
and does not publish.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.slurm import words
from ultracluster.catalog.slurm_refusals import (
    RefusalFacts,
    SlurmFile,
    SlurmKey,
    slurm_keys,
    slurm_refusals,
    slurm_releases,
)
from ultracluster.model.slurm_gres import device_files

Given = Mapping[str, str | None]
"""Values by name in small letters; None is set to something that is not known."""
TIME = r"-1|infinite|unlimited|\d*-(\d+(:\d+){0,2})?|\d+(:\d+){0,2}"
_FILES = {"NodeName": "slurm.conf", "PartitionName": "slurm.conf"}
_BOOLEANS = ("yes", "up", "true", "1", "no", "down", "false", "0")
_LARGEST = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1}
_NUMBER = re.compile(r"\s*([+-]?)(0x[0-9a-f]+|\d+)(k?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A parameter with which a daemon does not start."""

    key: str
    """As it is written."""
    says: str
    """The daemon's own words."""
    source: str
    """The file in Slurm's sources, and the function."""
    instead: str = ""
    """A value that works; empty where the parameter can be removed."""
    name: str = ""
    """The parameter that may be meant."""
    rule: str = ""
    """A rule that reports it with a remedy of its own."""
    ends: bool = True
    """False where the daemon reports the parameter and ignores it."""


def refusals(
    file: SlurmFile, given: Mapping[str, object], release: str, beside: Given | None = None
) -> Iterator[Refusal]:
    """Yield each parameter that a daemon refuses or ignores.

    Args:
        file: which file, or line of slurm.conf.
        given: the settings as they are written.
        release: of Slurm, `25.11`.
        beside: what else the file says; None for a value that is not known. What is missing is Slurm's
            default as far as it is known to be missing.
    """
    if release not in slurm_releases():
        return
    values = {name: str(value).strip('"') for name, value in given.items()}
    for name, value in values.items():
        if refusal := _unread(file, name, value, release):
            yield refusal
    known: dict[str, str | None] = dict(beside or {})
    known |= {name.lower(): value for name, value in values.items()}
    written = {name.lower(): name for name in values}
    for row in slurm_refusals():
        at = next((key for key in (row.key, *_keys_of(row)) if key.lower() in written), None)
        if row.file == file and at and row.holds_in(release) and _all_hold(row, known):
            yield _refusal(row, written[at.lower()], known)


def _unread(file: SlurmFile, name: str, value: str, release: str) -> Refusal | None:
    """The parser's own refusal: a name that it does not know, a value of another type."""
    keys = slurm_keys(file)
    key = keys.get(name.lower())
    if key is None or not key.known_in(release):
        names = [one.name for one in keys.values() if one.known_in(release)]
        # a name of another release is none that was mistyped
        near = [] if key else nearest(name, names, "", 1)
        return Refusal(
            key=name,
            says=f"Parsing error at unrecognized key: {name}",
            source="src/common/parse_config.c, s_p_parse_line",
            name=next(iter(near), ""),
        )
    if says := _unread_value(key, value):
        return Refusal(key=name, says=says, source="src/common/parse_value.c")
    if key.defunct and key.defunct <= release:
        says = f'The option "{key.name}" is defunct, please remove it from {_FILES.get(file, file)}.'
        return Refusal(key=name, says=says, source="_defunct_option", ends=False)
    return None


def _unread_value(key: SlurmKey, value: str) -> str:
    if key.type == "boolean":
        wrong = value.lower() not in _BOOLEANS
        return f'"{value}" is not a valid option for "{key.name}"' if wrong else ""
    largest = _LARGEST.get(key.type)
    if largest is None or value.lower() in ("unlimited", "infinite"):
        return ""
    found = _NUMBER.fullmatch(value)
    if not found or (found[3] and key.type == "uint16"):
        return f"{key.name} value ({value}) is not a valid number"
    if found[1] == "-":
        return f"{key.name} value ({value}) is less than zero"
    if int(found[2], 0 if found[2][:2].lower() == "0x" else 10) * (1024 if found[3] else 1) > largest:
        return f"{key.name} value ({value}) is greater than {largest}"
    return ""


def _keys_of(row: RefusalFacts) -> Iterator[str]:
    return (key for key, _, _ in row.conditions)


def _all_hold(row: RefusalFacts, known: Given) -> bool:
    for key, test, operand in row.conditions:
        value = known.get(key.lower())
        other = known.get(str(operand).lower()) if test in _WITH_OTHER else ""
        if value is None or other is None:
            return False  # not known
        if not _TESTS[test](value.lower(), other if test in _WITH_OTHER else operand):
            return False
    return True


def _refusal(row: RefusalFacts, key: str, known: Given) -> Refusal:
    value = known.get(row.key.lower()) or ""
    operands = [operand for name, test, operand in row.conditions if test == "other word" and name == row.key]
    word = next(iter(_others(value.lower(), operands[0])), "") if operands else ""
    written = next((one for one in words(value) if one.lower() == word), word)
    name = known.get("name") or ""
    return Refusal(
        key=key,
        says=row.says.format(value=value, word=written, name=name),
        source=row.source,
        instead=row.instead if key.lower() == row.key.lower() else "",
        rule=row.rule,
        name=row.name,
    )


def _others(value: str, allowed: list[str]) -> list[str]:
    prefixes = tuple(one[:-1] for one in allowed if one.endswith("/="))
    return [one for one in words(value) if one not in allowed and not (prefixes and one.startswith(prefixes))]


def _number(value: str) -> int | None:
    found = _NUMBER.fullmatch(value)
    return int(found[1] + found[2], 0) * (1024 if found[3] else 1) if found else None


def _option(value: str, name: str) -> int | None:
    found = re.search(rf"\b{name}=(\d+)", value)
    return int(found[1]) if found else None


def _like(value: str, pattern: str) -> bool:
    return re.fullmatch(pattern.replace("{time}", TIME), value) is not None


def _above(number: int | None, limit: int) -> bool:
    return number is not None and number > limit


def _below(number: int | None, limit: int | None) -> bool:
    return number is not None and limit is not None and number < limit


_WITH_OTHER = ("below key", "files other than")
"""Tests against the value of another parameter."""
_TESTS: Mapping[str, Callable[[str, Any], bool]] = {
    "is": lambda value, those: value in those,
    "is not": lambda value, those: value not in those,
    "word": lambda value, those: any(one in those for one in words(value)),
    "no word": lambda value, those: not any(one in those for one in words(value)),
    "other word": lambda value, those: bool(_others(value, those)),
    "words above": lambda value, those: sum(one in those for one in words(value)) > 1,
    "contains": lambda value, those: all(one in value for one in those),
    "lacks": lambda value, those: not any(one in value for one in those),
    "above": lambda value, limit: _above(_number(value), limit),
    "below": lambda value, limit: _below(_number(value), limit),
    "below key": lambda value, other: _below(_number(value), _number(other)),
    "number above": lambda value, pair: _above(_option(value, pair[0]), pair[1]),
    "number below": lambda value, pair: _below(_option(value, pair[0]), pair[1]),
    "files below": lambda value, limit: len([*device_files(value)]) < limit,
    "files other than": lambda value, other: _number(other) not in (None, len([*device_files(value)])),
    "unlike": lambda value, pattern: not _like(value, pattern),
}
