"""Resource types that hold data (`data_kinds.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


def held_data(kind: str) -> str | None:
    """What is lost with a resource of this type; None if it holds no data."""
    return _document()["kinds"].get(kind)


def kinds_with_data() -> list[str]:
    """Every type that holds data."""
    return list(_document()["kinds"])


def held_data_source() -> str:
    """Return the guides that document it."""
    return _document()["about"]["source"]


@cache
def _document() -> Mapping[str, Any]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
