"""Blanks of YAML files: what becomes of each, and that one without a value is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ultracluster.kubernetes.yaml_template import filled


@pytest.mark.parametrize(
    ("text", "values", "made"),
    [
        ("port: <port>", {"port": 9100}, {"port": 9100}),
        ("address: $1:<port>", {"port": 9100}, {"address": "$1:9100"}),
        ("{a: 1, labels: <labels>}", {"labels": None}, {"a": 1}),
        ("{a: 1, labels: <labels>}", {"labels": {}}, {"a": 1, "labels": {}}),
        ("[a, <more>, z]", {"more": ["b", "c"]}, ["a", "b", "c", "z"]),
        ("[a, <more>]", {"more": []}, ["a"]),
        ("[a, <more>]", {"more": {"b": 1}}, ["a", {"b": 1}]),
        ("{<base>: , b: 3}", {"base": {"a": 1, "b": 2}}, {"a": 1, "b": 3}),
        ("one: &one [<a>]\ntwo: *one", {"a": "x"}, {"one": ["x"], "two": ["x"]}),
    ],
)
def test_blanks(text: str, values: dict[str, Any], made: Any, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(f"object:\n  {text}\n".replace("\ntwo", "\n  two"), encoding="utf-8")

    assert filled(file, "object", **values) == made
    assert filled(file, "object", **values) == made, "the file's own object was changed"


def test_a_blank_without_a_value_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("object: {name: <name>}\n", encoding="utf-8")

    with pytest.raises(KeyError, match="name"):
        filled(file, "object")
