"""docs/security.md names tests, rules and keys that exist, and everybody who may reach something."""

from __future__ import annotations

import re

import pytest
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data, loaded

from ultracluster.config.network import ExistingVpc, Network, Perimeter
from ultracluster.model import TRAITS
from ultracluster.rules import all_rules

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
KEYS = {"network": Network, "network.perimeter": Perimeter, "network.vpc": ExistingVpc}


def table(heading: str) -> list[list[str]]:
    """Rows of the first table below a heading, without its head."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w./-]+)`", PAGE))))
def test_every_test_that_proves_something_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_rule_that_is_named_exists() -> None:
    named = set(re.findall(r"\b[A-Z]{3,4}\d{3}\b", PAGE))

    assert named and named <= {rule.id for rule in all_rules()}


@pytest.mark.parametrize("key", sorted(set(re.findall(r"`(network\.[a-z_.]+)", PAGE))))
def test_every_key_of_the_network_exists(key: str) -> None:
    place, _, field = key.rpartition(".")

    assert field in KEYS[place].model_fields


def test_every_promise_names_its_proof() -> None:
    promises = table("What is promised")

    assert len(promises) >= 6
    for promise, how, test in promises:
        assert promise and how and ("`" in test or test == "the same"), promise


def test_the_perimeter_that_it_shows_is_taken() -> None:
    (text,) = re.findall(r"```yaml\n(network:\n  perimeter:.*?)```", PAGE, re.DOTALL)
    written = YAML(typ="safe").load(text)
    data = changed(environment_data(), {"network.perimeter": written["network"]["perimeter"]})

    assert loaded(data).environment.network.perimeter.organization == "o-a1b2c3d4e5"


def test_who_can_reach_what_has_every_role_of_nodes_and_every_column() -> None:
    rows = table("Who can reach what")

    (nodes,) = [row for row in rows if row[0].startswith("node ")]
    roles = {role for traits in TRAITS.values() for role in traits.roles}
    assert set(re.findall(r"\w+", nodes[0].partition("(")[2])) == roles
    assert {len(row) for row in rows} == {9} and all(all(row) for row in rows)
