"""A rule whose source speaks of one service is about that service; its words are about the one at hand.

`rule_owners.json` has the exceptions, each with its reason. Both lists only become shorter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rules_support import environment_data, loaded

from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, OrchestratorKind
from ultracluster.model import TRAITS
from ultracluster.rules import all_rules
from ultracluster.rules.engine import Rule, run
from ultracluster.rules.examples import applied, examples

OWNERS: dict[str, frozenset[OrchestratorKind]] = {
    r"HyperPod|[Ss]age[Mm]aker": HYPERPOD,
    r"\bPCS\b|\bpcs\b": frozenset({"pcs"}),
    r"[Pp]arallel[Cc]luster|\bpcluster\b": frozenset({"parallelcluster"}),
    r"\bEKS\b|\beks\b": KUBERNETES,
}
"""Kinds of environments that the pages of a service are about, by its names."""
EVERY = frozenset(TRAITS)
DATA = json.loads(Path(__file__).with_name("rule_owners.json").read_text(encoding="utf-8"))
WIDER: dict[str, str] = DATA["wider"]
FOREIGN: dict[str, str] = DATA["foreign"]
BASES: dict[OrchestratorKind, str] = {
    "hyperpod-slurm": "dev",
    "hyperpod-eks": "hyperpod-eks-p5",
    "parallelcluster": "parallelcluster-p5",
    "pcs": "pcs-p6-b200",
    "eks": "eks-p5en",
}


def owners(text: str) -> frozenset[OrchestratorKind]:
    """The kinds that a text names a service of; none of a text that names none."""
    return frozenset(kind for name, kinds in OWNERS.items() if re.search(name, text) for kind in kinds)


def wider(rule: Rule) -> bool:
    """Whether it is about other kinds than those whose pages it goes by.

    Of several pages one that names no service, as EC2's or Slurm's, is about all.
    """
    pages = [owners(page) for page in rule.source.split("; ")]
    by_pages = EVERY if not all(pages) else frozenset().union(*pages)
    return not (rule.kinds or EVERY) <= by_pages or bool(owners(rule.title) and rule.kinds is None)


def test_a_rule_is_about_the_services_of_its_source() -> None:
    assert sorted(rule.id for rule in all_rules() if wider(rule)) == sorted(WIDER)


@pytest.mark.parametrize(
    ("source", "title", "kinds", "found"),
    [
        ("SageMaker Developer Guide, HyperPod", "It fits", None, True),
        ("SageMaker Developer Guide, HyperPod", "It fits", HYPERPOD, False),
        ("SageMaker Developer Guide; EC2 User Guide", "It fits", None, False),
        ("EC2 User Guide", "HyperPod's image has it", None, True),
        ("AWS PCS User Guide; SageMaker Developer Guide", "It fits", frozenset({"pcs", "eks"}), True),
    ],
)
def test_a_rule_that_is_too_wide_is_found(source: str, title: str, kinds: Any, found: bool) -> None:
    rule = Rule(
        id="ABC001",
        severity="error",
        title=title,
        source=source,
        date="",
        check=lambda: iter(()),
        kinds=kinds,
    )
    assert wider(rule) is found


@cache
def _messages() -> tuple[tuple[str, OrchestratorKind, str], ...]:
    """What each rule of several kinds says of its own example in an environment of each of them."""
    return tuple(_said())


def _said() -> Iterator[tuple[str, OrchestratorKind, str]]:
    for rule in all_rules():
        example = examples()[rule.id]
        kinds = rule.kinds or EVERY
        for kind in sorted(kinds) if len(kinds) > 1 and not example.where else ():
            try:
                broken = loaded(applied(environment_data(BASES[kind]), example.bad))
            except (InvalidEnvironmentError, AttributeError, TypeError, KeyError):
                continue  # a setting that this kind does not have
            for finding in run([rule], broken):
                if finding.code == rule.id:
                    yield rule.id, kind, finding.message


def test_messages_name_no_other_service() -> None:
    """`HyperPod's image` is no answer to somebody who has PCS."""
    said = {
        rule: f"{kind}: {message}"
        for rule, kind, message in _messages()
        if (named := owners(message)) and kind not in named
    }
    assert len(_messages()) > 400
    assert {rule: said[rule] for rule in sorted(said.keys() - FOREIGN.keys())} == {}
    assert sorted(FOREIGN.keys() - said.keys()) == []


@pytest.mark.parametrize("key", ["wider", "foreign"])
def test_the_lists_only_become_shorter(key: str) -> None:
    assert len(DATA[key]) == DATA["most"][key], "lower it; nothing raises it"
    assert all(len(reason.split()) > 3 for reason in DATA[key].values())
