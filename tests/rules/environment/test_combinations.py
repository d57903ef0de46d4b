"""Pairs of features: each row of the catalogue has an environment that breaks it and two that do not."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from rules_table import assert_remedy_ends

from ultracluster.catalog.combinations import Feature, Pair, pair_rules, pairs
from ultracluster.rules import all_rules, check
from ultracluster.rules.engine import run
from ultracluster.rules.examples import ABSENT

CASES = json.loads(Path(__file__).with_name("combination_cases.json").read_text(encoding="utf-8"))
ROWS = [(pair, kind) for pair in pairs() for kind in pair.on]
IDS = [f"{kind}: {pair.at.name} with {pair.other.name}" for pair, kind in ROWS]


def environment(kind: str, *having: Feature) -> dict[str, Any]:
    """A shipped environment of that kind with these features and no others."""
    base = CASES["bases"][kind]
    cases = [CASES["features"][one.name] for one in having]
    given = [case.get(kind, case.get(base["group"])) for case in cases]
    settings = chain(base["without"].items(), *(one.items() for one in given))
    named = {
        key.replace("GROUP", f"node_groups.{base['group']}"): ... if value == ABSENT else value
        for key, value in settings
    }
    return changed(environment_data(base["name"]), named)


def found(pair: Pair, data: dict[str, Any]) -> set[str]:
    """Places at which the rule of the pair speaks of its setting."""
    findings = [one for one in run(all_rules(), loaded(data)) if one.code == pair.rule]
    return {one.dotted for one in findings if pair.at.key in one.path}


@pytest.mark.parametrize(("pair", "kind"), ROWS, ids=IDS)
def test_both_together_are_found_and_each_alone_is_not(pair: Pair, kind: str) -> None:
    both = environment(kind, pair.other, pair.at)
    if pair.verdict == "allowed":
        assert not any(one.blocks for one in check(loaded(both)))
        return
    assert found(pair, both)
    assert not found(pair, environment(kind, pair.at))
    assert not found(pair, environment(kind, pair.other))


@pytest.mark.parametrize(
    ("pair", "kind"), [(pair, kind) for pair, kind in ROWS if pair.verdict != "allowed" and not pair.by_hand]
)
def test_remedies_end_it(pair: Pair, kind: str) -> None:
    data = environment(kind, pair.other, pair.at)
    (place,) = found(pair, data)
    assert_remedy_ends(pair.rule, place, data)


def test_every_row_has_its_rule() -> None:
    rules = {rule.id: rule for rule in all_rules()}
    for pair in pairs():
        assert bool(pair.rule) is (pair.verdict != "allowed"), pair
        if pair.rule:
            blocks = rules[pair.rule].severity == "error"
            assert blocks is (pair.verdict == "refused"), pair
    for _, _, rows in pair_rules().values():
        assert len({(row.at.of, row.other.of) for row in rows}) == 1
