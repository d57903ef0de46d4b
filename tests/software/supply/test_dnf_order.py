"""x"""

from __future__ import annotations

import pytest

from ultracluster.software.supply import dnf_repository

pytestmark = pytest.mark.usefixtures("no_pause")


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ("1.0-1", "1.0-2", -1),
        ("1.0", "1.0-2", 0),
        ("1:1.0-1", "2.0-1", 1),
        ("1.10-1", "1.9-1", 1),
        ("1.0~rc1-1", "1.0-1", -1),
        ("2.30.7-1+cuda13.3", "2.30.7-1+cuda13.3", 0),
    ],
)
def test_the_order_of_versions_is_that_of_rpm(first: str, second: str, order: int) -> None:
    assert dnf_repository.compare(first, second) == order
    assert dnf_repository.compare(second, first) == -order
