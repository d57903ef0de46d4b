"""Users, groups and ids that images and their services have, and that no person can have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRange:
    """Ids from `first` to `last`."""

    first: int
    last: int
    what: str
    """Whose they are, as an end of a sentence."""
    source: str


@cache
def taken_names() -> Mapping[str, str]:
    """Whose each name is; read-only."""
    return MappingProxyType({name: row["whose"] for row in _data()["names"] for name in row["names"]})


def taken_id(number: int) -> IdRange | None:
    """The range that an id is in; None where it is free."""
    return next((one for one in _ranges() if one.first <= number <= one.last), None)


@cache
def _ranges() -> tuple[IdRange, ...]:
    return tuple(IdRange(**row) for row in _data()["ids"])


@cache
def _data() -> dict[str, Any]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


__all__ = ["IdRange", "taken_id", "taken_names"]
