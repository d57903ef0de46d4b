"""Instance classes of RDS for MySQL (`rds_classes.json`, written by `tools/catalog_from_authorities.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


def rds_sizes() -> Mapping[str, tuple[str, ...]]:
    """Sizes by family: `{"m7g": ("large", ...)}`. A missing family proves nothing."""
    return {family: tuple(sizes) for family, sizes in _document()["sizes"].items()}


def rds_families(region: str) -> tuple[str, ...]:
    """Families with a price in a Region; empty means unknown."""
    return tuple(_document()["regions"].get(region, ()))


@cache
def _document() -> Mapping[str, Any]:
    return json.loads(Path(__file__).with_name("rds_classes.json").read_text(encoding="utf-8"))
