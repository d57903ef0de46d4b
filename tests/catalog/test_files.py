"""Files of the catalogue and their rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ultracluster.catalog.files import catalog_file, record, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    name: str
    kind: str = ""
    sizes: tuple[int, ...] = ()


def test_a_file_is_read_once() -> None:
    assert catalog_file("regions") is catalog_file("regions")


def test_lists_of_a_row_are_tuples_and_further_keys_are_for_others() -> None:
    rows = [{"name": "a", "sizes": [26, 29], "source": "a page"}, {"name": "b"}]

    assert table(Wheel, rows) == (Wheel(name="a", sizes=(26, 29)), Wheel(name="b"))
    assert record(Wheel, {"name": "a", "sizes": "none"}, sizes=(1,), kind="solid") == Wheel(
        name="a", kind="solid", sizes=(1,)
    )


def test_a_row_without_a_field_is_refused() -> None:
    with pytest.raises(TypeError, match="name"):
        record(Wheel, {"sizes": [1]})
