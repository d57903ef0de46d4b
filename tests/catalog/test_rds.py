"""Instance classes of RDS for MySQL."""

from __future__ import annotations

from ultracluster.catalog.rds import rds_families, rds_sizes


def test_a_family_with_a_price_has_sizes() -> None:
    sizes = rds_sizes()
    assert "large" in sizes["m7g"]
    assert all(sizes.values())
    assert set(rds_families("us-east-1")) & sizes.keys()


def test_a_region_without_prices_is_unknown() -> None:
    assert rds_families("xx-nowhere-9") == ()
