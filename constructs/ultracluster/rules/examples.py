"""One bad and one good piece of YAML for each rule, with what the rule says of the bad one.

The data is `examples.json`. Tests apply each example to its base and hold the rule to it; `make generate`
renews the words of the findings. `docs/rules.md` and `ultracluster rules CODE` print them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

FILE = Path(__file__).with_suffix(".json")
ABSENT = "(absent)"
"""As a value of `bad` or `good`: the key is taken away."""
_MANY = re.compile(r"\{(\d+)\.\.(\d+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What breaks a rule, and the smallest change that fixes it.

    Keys of `bad` and `good` are dotted paths. A key with `{0..9}` stands for ten, in whose values `{n}` is
    the number.
    """

    rule: str
    base: str
    """The shipped environment that `bad` changes, or one of `bases()`."""
    bad: dict[str, Any]
    good: dict[str, Any]
    """Changes on top of `bad`."""
    at: str = ""
    """Path of the finding. `make generate` writes it, the message and the remedy."""
    says: str = ""
    instead: str = ""
    where: str = ""
    """What must be true besides the file, such as a software release that does not exist; empty for most."""


@cache
def examples() -> dict[str, Example]:
    """The example of each rule, by its id."""
    return {rule: Example(rule=rule, **row) for rule, row in _data()["rules"].items()}


def bases() -> dict[str, dict[str, Any]]:
    """Bases that are no shipped environment: `from` one, with the changes `with`."""
    return _data()["bases"]


@cache
def _data() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def applied(environment: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`environment` with values set by dotted path."""
    result = copy.deepcopy(environment)
    for path, value in _each(changes):
        *parents, last = path.split(".")
        target = result
        for part in parents:
            target = target.setdefault(part, {})
        if value == ABSENT:
            target.pop(last, None)
        else:
            target[last] = _written_out(value)
    return result


def mapping(value: Any) -> dict[str, Any] | None:
    """`value` where it is a mapping."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def numbered(value: Any, number: int | str) -> Any:
    """`value` with `{n}` replaced in all of its text."""
    inner = mapping(value)
    if inner is not None:
        return {key: numbered(one, number) for key, one in inner.items()}
    return value.replace("{n}", str(number)) if isinstance(value, str) else value


def _written_out(value: Any) -> Any:
    inner = mapping(value)
    if inner is not None:
        return {key: _written_out(one) for key, one in _each(inner)}
    return copy.deepcopy(value)


def _each(changes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in changes.items():
        found = _MANY.search(key)
        if found is None:
            yield key, value
            continue
        for number in range(int(found[1]), int(found[2]) + 1):
            yield key.replace(found[0], str(number)), numbered(value, number)
