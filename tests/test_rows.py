"""A table in one test fails with each row that is wrong, and asks for its fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import for_each


def test_each_row_that_is_wrong_is_listed() -> None:
    asked: list[int] = []

    @for_each("number", [1, 2, 3], ids=lambda one: f"row {one}")
    def odd(number: int) -> None:
        asked.append(number)
        assert number == 2, "no"

    with pytest.raises(AssertionError, match=r"2 of 3 rows:\nrow 1: no(?s:.*)row 3: no"):
        odd()
    assert asked == [1, 2, 3]
    with pytest.raises(AssertionError, match="no row of number"):
        for_each("number", [])


@for_each(("left", "right"), [(1, 1), (2, 2)])
def test_a_fixture_is_given_to_every_row(left: int, tmp_path: Path, right: int) -> None:
    assert left == right
    assert tmp_path.is_dir()
