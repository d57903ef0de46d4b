"""Instance classes of RDS for MySQL (`rds_classes.json`, written by `tools/catalog_from_authorities.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog.files import catalog_file


def rds_sizes() -> Mapping[str, tuple[str, ...]]:
    """Sizes by family: `{"m7g": ("large", ...)}`. A missing family proves nothing."""
    return {family: tuple(sizes) for family, sizes in catalog_file("rds_classes")["sizes"].items()}


def rds_families(region: str) -> tuple[str, ...]:
    """Families with a price in a Region; empty means unknown."""
    return tuple(catalog_file("rds_classes")["regions"].get(region, ()))
