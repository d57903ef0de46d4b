"""Tables of rules: what breaks each one, and the smallest change that satisfies it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from project import ROOT
from rules_support import changed, environment_data, loaded
from without_remedy import WITHOUT_REMEDY

from ultracluster.config import Finding, InvalidEnvironmentError
from ultracluster.config.remedy import apply
from ultracluster.rules import RULE_SETS, RuleSet, check
from ultracluster.rules.engine import run
from ultracluster.rules.examples import ABSENT, Example, applied, examples


@dataclass(frozen=True)
class Case:
    """One way to break one rule of an otherwise valid environment."""

    rule: str
    broken: dict[str, Any]
    """Changes to `base` that break the rule."""
    at: str
    """Path of the finding."""
    says: str
    """A telling part of the message."""
    instead: str
    """A telling part of the remedy."""
    mended: dict[str, Any]
    """Changes on top of `broken` that just satisfy the rule."""
    base: str = "dev"

    def __str__(self) -> str:
        return f"{self.rule} {self.at}"


def cases(table: str) -> list[Case]:
    """The cases of `tests/rules/cases/<table>.yaml`, in their order.

    `base` is the environment of rows that name none, `common` what every row changes first, `names` are
    values that rows repeat. A value `(absent)` removes its key.
    """
    text = (ROOT / "tests/rules/cases" / f"{table}.yaml").read_text(encoding="utf-8")
    data = yaml.load(text, yaml.CSafeLoader)
    defaults = {"base": data.get("base", "dev")}
    rows = [Case(**(defaults | row)) for row in data["cases"]]
    return [
        replace(row, broken=data.get("common", {}) | _changes(row.broken), mended=_changes(row.mended))
        for row in rows
    ]


def _changes(row: dict[str, Any]) -> dict[str, Any]:
    return {path: ... if value == ABSENT else value for path, value in row.items()}


def found(rule_set: RuleSet, changes: dict[str, Any], base: str = "dev") -> list[Finding]:
    """What the rules of one set find in a shipped environment with `changes`."""
    data = changed(environment_data(base), copy.deepcopy(changes))
    findings = run(rule_set.rules, loaded(data))  # other sets' acknowledgements are no concern here
    return [one for one in findings if one.code.startswith(rule_set.prefix)]


def assert_breaks(rule_set: RuleSet, case: Case) -> None:
    findings = found(rule_set, case.broken, case.base)
    hits = [one for one in findings if (one.code, one.dotted) == (case.rule, case.at)]
    assert hits, [f"{one.code} {one.dotted}: {one.message}" for one in findings]
    assert any(case.says in one.message for one in hits), hits
    assert any(case.instead in one.instead for one in hits), hits
    assert all(one.message.endswith(".") and one.instead for one in hits), hits


def assert_mended(rule_set: RuleSet, case: Case) -> None:
    findings = found(rule_set, {**case.broken, **case.mended}, case.base)
    assert case.rule not in {one.code for one in findings}, findings


def assert_remedy_works(case: Case) -> None:
    """As `assert_remedy_ends`, for a case."""
    data = changed(environment_data(case.base), copy.deepcopy(case.broken))
    assert_remedy_ends(case.rule, case.at, data, case.says)


def judged(data: dict[str, Any]) -> list[Finding]:
    """What all rules find, or what is wrong with the shape."""
    try:
        return check(loaded(data))
    except InvalidEnvironmentError as error:
        return list(error.findings)


def assert_remedy_ends(
    rule: str,
    at: str,
    data: dict[str, Any],
    says: str = "",
    judge: Callable[[dict[str, Any]], Sequence[Finding]] = judged,
) -> None:
    """Each option of the remedy, applied as it is, ends the finding and brings no new error."""
    before = judge(data)
    hits = [one for one in before if (one.code, one.dotted) == (rule, at) and says in one.message]
    assert hits
    remedy = hits[0].remedy
    if not remedy.options:
        assert remedy.lacking and remedy.note
        assert WITHOUT_REMEDY.get(rule) == remedy.lacking, f"{rule} lacks a {remedy.lacking}"
    errors = {(one.code, one.dotted) for one in before if one.blocks}
    for option in remedy.options:
        after = judge(apply(data, option))
        assert (rule, at) not in {(one.code, one.dotted) for one in after}, option
        new = [
            f"{one.code} {one.dotted}: {one.message}"
            for one in after
            if one.blocks and (one.code, one.dotted) not in errors
        ]
        assert not new, (option, new)


def table_tests(*, cases: list[Case]) -> tuple[Callable[..., None], ...]:
    """The tests of a table: each case breaks its rule; a change by hand mends it, and so does the advice.

    What `examples.json` has of a rule is in no table: tests/rules/test_examples.py holds the rule to it.
    """

    @pytest.mark.parametrize("case", cases, ids=str)
    def judged(case: Case) -> None:
        assert_breaks(_set_of(case), case)
        assert_mended(_set_of(case), case)

    @pytest.mark.slow  # half of the time of all rules: the file is judged again with each option
    @pytest.mark.parametrize("case", cases, ids=str)
    def advised(case: Case) -> None:
        assert_remedy_works(case)

    return judged, advised


def world_tests(rule_set: RuleSet) -> Callable[..., None]:
    """The test of the examples that need a world of the calling module: releases and images with faults."""
    here = [one for one in examples().values() if one.where and one.rule.startswith(rule_set.prefix)]

    @pytest.mark.parametrize("example", here, ids=lambda one: one.rule)
    def says_so(example: Example) -> None:
        data = applied(environment_data(example.base), example.bad)
        bad = [one for one in run(rule_set.rules, loaded(data)) if one.code == example.rule]
        assert (example.at, example.says) in [(one.dotted, one.message) for one in bad], bad
        assert any(example.instead in one.instead for one in bad), bad
        good = run(rule_set.rules, loaded(applied(data, example.good)))
        assert example.rule not in {one.code for one in good}, good

    assert here
    return says_so


def _set_of(case: Case) -> RuleSet:
    return next(rule_set for rule_set in RULE_SETS if rule_set.prefix == case.rule.rstrip("0123456789"))
