"""Each rule's example does what docs/rules.md says: the bad lines are found, the good ones are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_table import assert_remedy_ends

from tools.rule_examples import base_of, found, on_the_day, the_finding, written
from ultracluster.cli.rule_words import yaml_lines
from ultracluster.config import Finding
from ultracluster.rules import all_rules
from ultracluster.rules.examples import ABSENT, FILE, applied, examples

pytestmark = pytest.mark.slow

PLAIN = [code for code, one in examples().items() if not one.where]
"""The others are held to their words where their world is made: test_software.py, test_images.py."""
TABLES = tuple(
    prefix
    for file in Path(__file__).parent.rglob("test_*.py")
    for prefixes in re.findall(r"table_tests\(\s*((?:[A-Z]+, )+)", file.read_text())
    for prefix in prefixes.removesuffix(", ").split(", ")
)
"""Prefixes of the sets that a table covers, rule by rule."""


@cache
def bad(code: str) -> Sequence[Finding]:
    """What all rules find in the bad lines."""
    return found(examples()[code], good=False)


@pytest.fixture(autouse=True)
def day() -> Iterator[None]:
    with on_the_day():
        yield


def test_every_rule_has_an_example_and_nothing_else_has() -> None:
    assert set(examples()) == {rule.id for rule in all_rules()}


@pytest.mark.parametrize("code", PLAIN)
def test_the_bad_lines_are_found_in_these_words(code: str) -> None:
    example = examples()[code]
    finding = the_finding(example, bad(code))

    assert finding is not None, "the rule says nothing of its bad lines"
    said = (finding.dotted, finding.message, finding.instead)
    assert said == (example.at, example.says, example.instead), "run `make generate`"


@pytest.mark.parametrize("code", PLAIN)
def test_the_good_lines_are_not_and_bring_no_new_error(code: str) -> None:
    example = examples()[code]
    before = {one.code for one in bad(code) if one.blocks}
    after = found(example, good=True)

    assert code not in {one.code for one in after}
    assert {one.code for one in after if one.blocks} <= before
    assert example.good


@pytest.mark.parametrize("code", [code for code in PLAIN if not code.startswith(TABLES)])
def test_the_remedy_works(code: str) -> None:
    """In the other sets each rule has a case in a table, which applies the remedy."""
    example = examples()[code]
    assert_remedy_ends(code, example.at, applied(base_of(example), example.bad))


def test_keys_are_taken_away_and_counted_out() -> None:
    data = {"a": {"b": 1, "c": 2}}
    changes = {"a.b": ABSENT, "a.n{0..2}": {"p": "g{n}"}, "d": {"t{8..9}": "x"}}

    assert applied(data, changes) == {
        "a": {"c": 2, "n0": {"p": "g0"}, "n1": {"p": "g1"}, "n2": {"p": "g2"}},
        "d": {"t8": "x", "t9": "x"},
    }
    assert data == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize("code", PLAIN)
def test_what_is_printed_is_the_yaml_of_the_example(code: str) -> None:
    """But for what is written as a comment: keys that are taken away, and numbers that stand for many."""
    example = examples()[code]
    text = "\n".join(yaml_lines(example.bad))
    kept = {path: value for path, value in example.bad.items() if value != ABSENT}

    assert max(map(len, text.splitlines())) <= 160
    if "and so on" not in text and kept:
        assert without_nothing(YAML(typ="safe").load(text)) == without_nothing(applied({}, kept))


def without_nothing(value: Any) -> Any:
    """A mapping whose keys are all taken away is read as null."""
    if isinstance(value, dict):
        return {key: without_nothing(one) for key, one in value.items() if one is not None}
    return value


def test_the_file_is_as_the_tool_writes_it() -> None:
    assert written(json.loads(FILE.read_text())) == FILE.read_text(), "run `make generate`"
