"""Each rule's example does what docs/rules.md says: the bad lines are found, the good ones are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_table import assert_remedy_ends, judged

from tools.rule_examples import base_of, on_the_day, the_finding, written
from ultracluster.cli.rule_words import yaml_lines
from ultracluster.config import Finding
from ultracluster.rules import all_rules
from ultracluster.rules.examples import ABSENT, FILE, applied, examples

pytestmark = pytest.mark.slow

PLAIN = [code for code, one in examples().items() if not one.where]
"""The others are held to their words where their world is made: test_software.py, test_images.py."""


def bad(code: str) -> dict[str, Any]:
    example = examples()[code]
    return applied(base_of(example), example.bad)


def found(data: dict[str, Any]) -> Sequence[Finding]:
    """What all rules find; a remedy often leads to the good lines, which are judged once."""
    return _found(json.dumps(data))


@lru_cache(maxsize=2000)
def _found(text: str) -> Sequence[Finding]:
    return judged(json.loads(text))


@pytest.fixture(autouse=True)
def day() -> Iterator[None]:
    with on_the_day():
        yield


def test_every_rule_has_an_example_and_nothing_else_has() -> None:
    assert set(examples()) == {rule.id for rule in all_rules()}


def test_the_others_have_tests_of_their_own() -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in Path(__file__).parent.rglob("test_*.py")}
    worlds = tuple(re.findall(r"= world_tests\((\w+)\)", "".join(texts.values())))
    rest = {code for code in set(examples()) - set(PLAIN) if not code.startswith(worlds)}

    assert [code for code in sorted(rest) if not any(f'"{code}"' in text for text in texts.values())] == []


@pytest.mark.parametrize("code", PLAIN)
def test_the_bad_lines_are_found_in_these_words_and_the_good_ones_are_not(code: str) -> None:
    example = examples()[code]
    before = found(bad(code))
    finding = the_finding(example, before)

    assert finding is not None, "the rule says nothing of its bad lines"
    said = (finding.dotted, finding.message, finding.instead)
    assert said == (example.at, example.says, example.instead), "run `make generate`"
    assert finding.message.endswith(".")
    assert finding.instead

    after = found(applied(bad(code), example.good))

    assert code not in {one.code for one in after}, "the good lines bring no end to it"
    assert {one.code for one in after if one.blocks} <= {one.code for one in before if one.blocks}
    assert example.good


@pytest.mark.parametrize("code", PLAIN)
def test_the_remedy_works(code: str) -> None:
    assert_remedy_ends(code, examples()[code].at, bad(code), judge=found)


def test_keys_are_taken_away_and_counted_out() -> None:
    data = {"a": {"b": 1, "c": 2}}
    changes = {"a.b": ABSENT, "a.n{0..2}": {"p": "g{n}"}, "d": {"t{8..9}": "x"}}

    assert applied(data, changes) == {
        "a": {"c": 2, "n0": {"p": "g0"}, "n1": {"p": "g1"}, "n2": {"p": "g2"}},
        "d": {"t8": "x", "t9": "x"},
    }
    assert data == {"a": {"b": 1, "c": 2}}


def test_what_is_printed_is_the_yaml_of_the_example() -> None:
    """But for what is written as a comment: keys that are taken away, and numbers that stand for many."""
    for code in PLAIN:
        example = examples()[code]
        text = "\n".join(yaml_lines(example.bad))
        kept = {path: value for path, value in example.bad.items() if value != ABSENT}

        assert max(map(len, text.splitlines())) <= 160, code
        if "and so on" not in text and kept:
            assert without_nothing(YAML(typ="safe").load(text)) == without_nothing(applied({}, kept)), code


def without_nothing(value: Any) -> Any:
    """A mapping whose keys are all taken away is read as null."""
    if isinstance(value, dict):
        return {key: without_nothing(one) for key, one in value.items() if one is not None}
    return value


def test_the_file_is_as_the_tool_writes_it() -> None:
    assert written(json.loads(FILE.read_text())) == FILE.read_text(), "run `make generate`"
