"""Users, groups and ids that images and their services have, and that no person can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ultracluster.catalog.files import catalog_file, table


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
    return MappingProxyType(
        {name: row["whose"] for row in catalog_file("node_accounts")["names"] for name in row["names"]}
    )


def taken_id(number: int) -> IdRange | None:
    """The range that an id is in; None where it is free."""
    return next((one for one in _ranges() if one.first <= number <= one.last), None)


@cache
def _ranges() -> tuple[IdRange, ...]:
    return table(IdRange, catalog_file("node_accounts")["ids"])


__all__ = ["IdRange", "taken_id", "taken_names"]
