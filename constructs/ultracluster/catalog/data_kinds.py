"""Resource types that hold data (`data_kinds.json`)."""

from __future__ import annotations

from functools import partial

from ultracluster.catalog.files import catalog_file

_document = partial(catalog_file, "data_kinds")


def held_data(kind: str) -> str | None:
    """What is lost with a resource of this type; None if it holds no data."""
    return _document()["kinds"].get(kind)


def kinds_with_data() -> list[str]:
    """Every type that holds data."""
    return list(_document()["kinds"])


def held_data_source() -> str:
    """Return the guides that document it."""
    return _document()["about"]["source"]
