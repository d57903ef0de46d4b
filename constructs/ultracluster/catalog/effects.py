"""Settings that have an effect under a condition only; `effects.json` has the rows with their sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A setting and where it has an effect."""

    setting: str
    """Path from the top of the file; `*` is any name."""
    of: Literal["some group", "group", "beside", "environment"]
    """Bearer of the condition."""
    where: Mapping[str, Any]
    """Condition (rules/conditions.py)."""
    why: str
    """Reason why it has no effect elsewhere; `{type}` is the group's instance type."""
    source: str
    date: str
    but: Collection[Any] = ()
    """Values that may stand in any file: they describe what is true without them."""
    on: Collection[str] = ()
    """Orchestrators; empty for all."""


@cache
def effects() -> tuple[Effect, ...]:
    """All rows."""
    return table(Effect, catalog_file("effects")["rows"])
