"""Sizes that a new environment begins with."""

from __future__ import annotations

from dataclasses import astuple

from ultracluster.catalog import instance_type
from ultracluster.catalog.guidelines import (
    checkpoint_interval,
    checkpoint_share,
    general_families,
    guideline,
)


def test_more_nodes_never_begin_with_less() -> None:
    rows = [guideline(nodes) for nodes in (1, 8, 64, 512, 10_000)]
    assert [row.lustre_tib for row in rows] == sorted(row.lustre_tib for row in rows)
    assert [row.login_nodes for row in rows] == sorted(row.login_nodes for row in rows)
    assert astuple(guideline(10**6)) == astuple(guideline(10**9))


def test_controllers_and_login_nodes_have_sizes_that_their_families_have() -> None:
    for nodes in (1, 64, 10_000):
        row = guideline(nodes)
        for kind in ("hyperpod", "x86_64", "arm64"):
            for size in (row.controller, row.login):
                assert any(instance_type(f"{family}.{size}") for family in general_families(kind))


def test_a_checkpoint_takes_a_part_of_its_interval_and_of_the_memory() -> None:
    interval = checkpoint_interval()
    assert 0 < interval.most_minutes == interval.minutes * interval.share < interval.minutes
    assert 0 < checkpoint_share() <= 1
