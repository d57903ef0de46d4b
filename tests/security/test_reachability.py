"""Who reaches whom in every environment: what must be open is, nothing else is, wrong templates are found."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from iam_proof.environments import CLOSED, NAMES, config_of
from project import ROOT, SHIPPED
from reachability.flows import LISTS, Row, accepted_in, findings, network_of, rows, rows_for, shut, surplus
from reachability.groups import Traffic
from reachability.network import NetworkOf
from rows import for_each

Templates = dict[str, Any]
Get = Callable[[str], Templates]
ASKED = [name for name in NAMES if name in SHIPPED or CLOSED in name]
"""A network that exists already has rules and routes that no template shows."""
WRONG: list[dict[str, Any]] = yaml.load(
    (ROOT / "tests" / "security" / "wrong_networks.yaml").read_text(), Loader=yaml.CSafeLoader
)["wrong"]


@pytest.fixture(scope="module")
def network(templates_of: Get) -> Callable[[str], NetworkOf]:
    return cache(lambda name: network_of(templates_of(name), config_of(name)))


NEEDED = [(name, row) for name in ASKED for row in rows_for("needed", config_of(name))]


@for_each(("name", "row"), NEEDED)
def test_what_is_needed_is_open(name: str, row: Row, network: Callable[[str], NetworkOf]) -> None:
    assert not list(shut(row, network(name)))


@pytest.mark.parametrize("name", ASKED)
def test_nothing_else_is(name: str, network: Callable[[str], NetworkOf]) -> None:
    assert not list(surplus(network(name)))


def test_every_row_is_about_some_environment() -> None:
    assert {row.flow for _, row in NEEDED} == {row.flow for row in rows("needed")}
    assert all(row.why for which in LISTS for row in rows(which))


def test_what_is_accepted_is_open_somewhere(network: Callable[[str], NetworkOf]) -> None:
    """And belongs to no flow that is needed."""
    there = {flow for name in ASKED for flow in accepted_in(network(name))}

    assert there == {row.flow for row in rows("accepted")}


def test_a_rule_for_more_ports_is_not_explained_by_one_for_less() -> None:
    assert Traffic("tcp", 1018, 1023).covers(Traffic("tcp", 1019, 1019))
    assert not Traffic("tcp", 988, 988).covers(Traffic("tcp", 988, 1023))
    assert not Traffic("tcp", 53, 53).covers(Traffic("udp", 53, 53))
    assert Traffic("tcp", 1, 1000).common(Traffic("tcp", 988, 1023)) == Traffic("tcp", 988, 1000)


@pytest.mark.parametrize("row", WRONG, ids=[row["wrong"] for row in WRONG])
def test_wrong_templates_are_found(row: dict[str, Any], templates_of: Get) -> None:
    name, part, word = row["in"].split()
    templates, stack = dict(templates_of(name)), f"{name}-{part}"
    templates[stack] = copy.deepcopy(templates[stack])
    resources = templates[stack]["Resources"]
    (logical,) = (one for one in resources if re.fullmatch(rf"{word}([0-9A-F]{{8}})?", one))
    assert row.keys() & {"remove", "set", "swap", "beside"}

    for path, value in row.get("set", {}).items():
        put(resources[logical]["Properties"], path, value)
    if "swap" in row:
        old, new = (json.dumps(one)[1:-1] for one in row["swap"])
        text = json.dumps(resources[logical])
        assert old in text
        resources[logical] = json.loads(text.replace(old, new))
    resources.update(row.get("beside", {}))
    if row.get("remove"):
        del resources[logical]
    found = findings(network_of(templates, config_of(name)))

    for text in row["finds"]:
        assert any(text in one for one in found), text


def test_twenty_are_wrong_at_least() -> None:
    assert len(WRONG) >= 20
    assert all(row["finds"] for row in WRONG)


def put(properties: Any, path: str, value: Any) -> None:
    """Sets what a dotted path leads to; None takes it away."""
    *steps, last = path.split(".")
    for step in steps:
        properties = properties[int(step) if step.isdigit() else step]
    if value is None:
        del properties[last]
    else:
        properties[last] = value


def test_every_rule_is_needed(network: Callable[[str], NetworkOf]) -> None:
    """None is there twice or for nothing: without it something is closed."""
    for name in ASKED:
        one = network(name)
        for group, way, number in _rules(one):
            rules = getattr(one.groups[group], way)
            gone = rules.pop(number)
            assert findings(one), f"{name}: nobody misses {gone}"
            rules.insert(number, gone)


def _rules(network: NetworkOf) -> Iterator[tuple[str, str, int]]:
    for group, told in network.groups.items():
        for way in ("ingress", "egress") if told.ours else ():
            for number, rule in enumerate(getattr(told, way)):
                if rule.peer != "255.255.255.255/32":
                    yield group, way, number
