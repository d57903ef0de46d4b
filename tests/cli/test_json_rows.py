"""Rows of `--json` come from data classes; each row is of a class that a document has."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import pytest

from tools import json_schemas
from ultracluster.cli import json_rows
from ultracluster.cli.documents import DOCUMENTS
from ultracluster.cli.json_rows import ROWS, plain


@dataclass(frozen=True)
class Wheel:
    inches: float
    maker: str = ""

    @property
    def millimetres(self) -> float:
        return self.inches * 25.4

    def tyre(self) -> str:
        return f"{self.inches:g} inches"


@dataclass(frozen=True)
class Bicycle:
    wheels: tuple[Wheel, ...]
    front: Wheel | None
    _inner: str = "x"


def test_without_a_row_all_public_fields_and_properties() -> None:
    assert plain({"it": Bicycle((Wheel(1, "A"),), None)}) == {
        "it": {"wheels": [{"inches": 1, "maker": "A", "millimetres": 25.4}], "front": None}
    }


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ("-wheels", {"front": {"inches": 29.123, "maker": "", "millimetres": 739.7242}}),
        ("size=front.inches", {"size": 29.123}),
        ("maker=front.maker?", {"maker": None}),
        ("maker=front.maker", {"maker": ""}),
        ("size=front.inches%1", {"size": 29.1}),
        ("tyre=front.tyre", {"tyre": "29.123 inches"}),
    ],
)
def test_a_row_says_which(row: str, keys: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, f"{__name__}:Bicycle", row)
    json_rows.keys_of.cache_clear()

    assert plain(Bicycle((), Wheel(29.123))) == keys
    assert row != "size=front.inches%1" or plain(Bicycle((), None)) == {"size": None}


def test_a_row_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, f"{__name__}:Bicycle", "size=front.inches%")
    json_rows.keys_of.cache_clear()

    with pytest.raises(AssertionError, match="size=front"):
        plain(Bicycle((), None))


def test_every_row_is_of_a_class_in_a_document() -> None:
    json_schemas.model_of.cache_clear()
    json_rows.keys_of.cache_clear()
    for name in DOCUMENTS:
        json_schemas.schema_of(name)
    read = json_rows.keys_of.cache_info().currsize
    for row in ROWS:
        module, _, kind = row.partition(":")
        json_rows.keys_of(getattr(import_module(f"ultracluster.{module}"), kind))

    assert json_rows.keys_of.cache_info().currsize == read, "a row is of a class that no document has"
