"""The catalogue's files: each is read once, when somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

T = TypeVar("T")


@cache
def catalog_file(name: str) -> Mapping[str, Any]:
    """Content of the catalogue's `<name>.json`; read-only."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))


def record(kind: type[T], row: Mapping[str, Any], /, **others: Any) -> T:
    """A row as an instance of a data class, its lists as tuples; further keys of the row are for others.

    Args:
        others: fields that the row lacks, or has in another form.
    """
    names = cast("Any", kind).__dataclass_fields__.keys() & row.keys() - others.keys()
    return kind(**{name: _frozen(row[name]) for name in names}, **others)


def table(kind: type[T], rows: Iterable[Mapping[str, Any]]) -> tuple[T, ...]:
    """Rows as instances of a data class, their lists as tuples."""
    return tuple(record(kind, row) for row in rows)


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in cast("list[Any]", value))
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


__all__ = ["catalog_file", "record", "table"]
