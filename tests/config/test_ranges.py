"""Each whole number of the configuration: the ends of its range, and the holes that the API documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import pytest
from pydantic import TypeAdapter, ValidationError

from ultracluster.config import Environment
from ultracluster.config.advice import wrong_value
from ultracluster.config.base import Model, Without
from ultracluster.config.pcs import PcsAccounting
from ultracluster.config.source import Source

HOLES = {"PcsAccounting.purge_days": {0}}
"""Numbers inside a range that the API reference excludes in a sentence (botocore, pcs, `Accounting`)."""


def models(of: type[Model] = Model) -> Iterator[type[Model]]:
    for model in of.__subclasses__():
        yield model
        yield from models(model)


@cache
def numbers() -> dict[str, tuple[TypeAdapter[Any], dict[str, Any]]]:
    """A validator of each field that takes whole numbers, with its JSON Schema."""
    assert Environment in set(models())
    found: dict[str, tuple[TypeAdapter[Any], dict[str, Any]]] = {}
    for model in models():
        model.model_rebuild()
        for name, field in model.model_fields.items():
            adapter: TypeAdapter[Any] = TypeAdapter(field.rebuild_annotation())
            schema = adapter.json_schema()
            parts = cast("list[dict[str, Any]]", schema.get("anyOf", [schema]))
            whole = [
                part
                for part in parts
                if part.get("type") == "integer" and not part.keys() & {"enum", "const"}
            ]
            if len(whole) == 1 and model.__module__.startswith("ultracluster.config."):
                found[f"{model.__name__}.{name}"] = adapter, whole[0]
    return found


def least(schema: dict[str, Any]) -> int | None:
    if "exclusiveMinimum" in schema:
        return schema["exclusiveMinimum"] + 1
    return schema.get("minimum")


def said(adapter: TypeAdapter[Any], name: str, number: int) -> tuple[str, Any] | None:
    """What is said of a number, and the number that is advised; None where it is taken."""
    try:
        adapter.validate_python(number, strict=True)
    except ValidationError as error:
        (one, *_) = [row for row in error.errors() if row["type"] not in ("literal_error", "none_required")]
        message, remedy = wrong_value(Source("test.yaml", {}), (name,), one)
        (option, *_) = remedy.placed((name,)).options
        return message, option[0].value
    return None


def test_the_numbers_of_every_model_are_here() -> None:
    assert len(numbers()) > 60
    assert {
        "PcsAccounting.purge_days",
        "NodeGroup.count",
        "ParallelCluster.scaledown_minutes",
    } <= numbers().keys()


def test_a_number_is_taken_in_its_range_and_refused_in_our_words_outside() -> None:
    for place, (adapter, schema) in numbers().items():
        name = place.partition(".")[2]
        first, last, holes = least(schema), schema.get("maximum"), HOLES.get(place, set[int]())
        assert first is not None, f"{place} has no least value"
        for number in {-1, 0, 1, first - 1, first, *([last, last + 1] if last is not None else [])}:
            answer = said(adapter, name, number)
            inside = first <= number and (last is None or number <= last) and number not in holes
            assert (answer is None) is inside, (place, number)
            if answer:
                message, advised = answer
                assert message.startswith(str(number)) and message.endswith("."), message
                assert "nput should" not in message, "words of the validator"
                assert said(adapter, name, advised) is None, place
                assert number in holes or abs(advised - number) == min(
                    abs(end - number) for end in (first, last) if end is not None
                ), place


@pytest.mark.parametrize("place", HOLES)
def test_a_hole_is_in_the_schema_and_says_why(place: str) -> None:
    adapter, schema = numbers()[place]
    for number in HOLES[place]:
        answer = said(adapter, place, number)
        assert schema["not"] == {"const": number}
        assert answer and len(answer[0].split()) > 5


def test_every_hole_is_listed() -> None:
    holes = {
        f"{model.__name__}.{name}"
        for model in models()
        for name, field in model.model_fields.items()
        if any(isinstance(one, Without) for one in field.metadata)
    }
    assert holes == HOLES.keys()
    assert PcsAccounting(purge_days=-1).purge_days == -1
