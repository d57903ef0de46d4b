"""What holds for every set of rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import ROOT, SHIPPED

from ultracluster import rules
from ultracluster.config import load
from ultracluster.rules import RULE_SETS, RuleSet, all_rules, check, kinds_of_modules


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_environments_break_nothing(name: str) -> None:
    findings = check(load(ROOT / "environments" / f"{name}.yaml"))
    assert [one for one in findings if not one.acknowledged] == []


def test_each_module_of_a_subject_has_a_rule() -> None:
    """A rule without its decorator would be dead; what several modules share lies beside the folders."""
    folder = Path(rules.__path__[0])
    modules = {
        ".".join((rules.__name__, *file.relative_to(folder).with_suffix("").parts))
        for file in folder.glob("*/**/*.py")
        if file.name != "__init__.py"
    }
    assert {rule.check.__module__ for rule in all_rules()} == modules


@pytest.mark.parametrize("module", kinds_of_modules())
def test_modules_that_some_orchestrators_do_not_import_have_no_rule_about_these(module: str) -> None:
    place = f"{rules.__name__}.{module}"
    of_module = [rule for rule in all_rules() if f"{rule.check.__module__}.".startswith(f"{place}.")]
    assert of_module
    for rule in of_module:
        assert rule.kinds is not None
        assert rule.kinds <= kinds_of_modules()[module], rule.id


@pytest.mark.parametrize("rule_set", RULE_SETS, ids=lambda rule_set: rule_set.prefix)
def test_titles_are_unique_and_sourced(rule_set: RuleSet) -> None:
    of_set = rule_set.rules
    assert len({rule.title for rule in of_set}) == len(of_set)
    assert all(rule.title and rule.source and not rule.title.endswith(".") for rule in of_set)
    assert all(rule.id.startswith(rule_set.prefix) for rule in of_set)


def test_the_number_of_a_rule_that_is_gone_is_not_given_again() -> None:
    rule_set = RuleSet("ABC", "Letters", retired={1: "it was wrong", 2: "ABC003 says it"})

    assert rule_set.next_number == 3
    with pytest.raises(ValueError, match=r"ABC002 is retired \(ABC003 says it\): take 3"):
        rule_set.error(2, "a page")(lambda: iter(()))


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in all_rules()}) == len(all_rules())


def test_no_check_is_in_two_rules() -> None:
    """What several orchestrators have in common is one rule with several `kinds`."""
    assert len({rule.check for rule in all_rules()}) == len(all_rules())
