"""Debian's order of versions, compared with dpkg."""

from __future__ import annotations

import subprocess

import pytest

from ultracluster.software.supply import apt_repository

pytestmark = pytest.mark.usefixtures("no_pause")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1.0", "1.0-1"),
        ("1.0~rc1", "1.0"),
        ("9", "1:1"),
        ("2.30.7-1+cuda13.2", "2.30.7-1+cuda13.3"),
        ("1.2.9", "1.2.10"),
        ("1.0-1ubuntu1~22.04", "1.0-1ubuntu1"),
        ("1.0a", "1.0+"),
    ],
)
def test_the_order_of_versions_is_that_of_dpkg(first: str, second: str) -> None:
    for one, other, order in ((first, second, -1), (second, first, 1), (first, first, 0)):
        assert apt_repository.compare(one, other) == order
        relation = {-1: "lt", 0: "eq", 1: "gt"}[order]
        assert (
            subprocess.run(["dpkg", "--compare-versions", one, relation, other], check=False).returncode == 0
        )
