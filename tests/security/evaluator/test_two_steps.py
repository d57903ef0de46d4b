"""Escalation in two steps: nobody tags what is not theirs, and then acts on what has the tag.

Rows of `denied.yaml` ask for both steps. Here each condition that keeps a step is dropped, and the row must
notice; and what the page says is not kept apart must be so, or the page is out of date.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import pytest
import yaml
from iam_proof.environments import rows_for
from iam_proof.evaluator import Evaluator
from iam_proof.people import web_pods
from iam_proof.rows import TABLES, Row
from iam_proof.verdicts import verdicts
from iam_proof.world import World
from project import ROOT

Worlds = Callable[[str], tuple[World, World]]
ENVIRONMENTS = {
    "eks": "hyperpod-eks-p5",
    "served": "hyperpod-eks-p5, models that are served",
    "spaces": "hyperpod-eks-p5, no way out and observability and a tier of checkpoints and spaces",
}
CASES = yaml.safe_load((TABLES / "two_steps.yaml").read_text(encoding="utf-8"))


def cases(of: str, name: Callable[[Mapping[str, Any]], str]) -> pytest.MarkDecorator:
    found: list[dict[str, Any]] = CASES[of]
    return pytest.mark.parametrize("case", found, ids=[name(one) for one in found])


def without(policy: Mapping[str, Any], sid: str, key: str | None) -> dict[str, Any]:
    """The policy less one condition of a statement, or less the statement."""
    changed = copy.deepcopy(dict(policy))
    for statement in changed["Statement"]:
        if statement.get("Sid") == sid and key is not None:
            assert any(key in keys for keys in statement["Condition"].values()), key
            statement["Condition"] = {
                operator: {name: value for name, value in keys.items() if name != key}
                for operator, keys in statement["Condition"].items()
            }
    if key is None:
        changed["Statement"] = [one for one in changed["Statement"] if one.get("Sid") != sid]
    return changed


def exclusive() -> list[tuple[str, str]]:
    """(service account, statement) of inference_rights.json whose reason says who else is out of reach."""
    text = files("ultracluster.clusters.hyperpod").joinpath("inference_rights.json").read_text("utf-8")
    return [
        (row["account"], statement["sid"])
        for row in json.loads(text).values()
        for statement in row.get("statements", [])
        if re.search(r"\bonly\b", statement.get("why", ""), re.IGNORECASE)
        and "read-only" not in statement["why"]
        and "conditions" in statement
    ]


@pytest.mark.parametrize(("account", "sid"), exclusive())
def test_a_reason_that_says_only_is_held_to_a_row(
    account: str, sid: str, evaluator: Evaluator, worlds: Worlds
) -> None:
    world, neighbour = worlds(ENVIRONMENTS["served"])
    (identity,) = web_pods(world)[account][0].identity
    wrong = copy.deepcopy(dict(world.policies[identity]))
    (statement,) = [one for one in wrong["Statement"] if one.get("Sid") == sid]
    del statement["Condition"]
    asked = [one for one in rows_for(ENVIRONMENTS["served"]) if one.table == "denied" and account in one.who]
    found = verdicts(world, evaluator, asked, others=[neighbour], instead={identity: wrong})

    assert [row for row, verdict in found.items() if verdict.surprises]


@cases("dropped", lambda one: f"{one['sid']} without {one['key']}")
def test_a_condition_that_is_dropped_is_noticed(
    case: Mapping[str, Any], evaluator: Evaluator, worlds: Worlds
) -> None:
    name, sid, key, row = ENVIRONMENTS[case["at"]], case["sid"], case["key"], case["row"]
    world, neighbour = worlds(name)
    (asked,) = [one for one in rows_for(name) if one.row == row]
    wrong = {
        policy: without(document, sid, key)
        for policy, document in world.policies.items()
        if any(one.get("Sid") == sid and (key is None or key in str(one)) for one in document["Statement"])
    }

    assert wrong
    assert not verdicts(world, evaluator, [asked], others=[neighbour])[row].surprises
    assert verdicts(world, evaluator, [asked], others=[neighbour], instead=wrong)[row].surprises


@cases("shared", lambda one: one["calls"])
def test_what_is_not_kept_apart_is_on_the_page(
    case: Mapping[str, Any], evaluator: Evaluator, worlds: Worlds
) -> None:
    world, neighbour = worlds(ENVIRONMENTS[case["at"]])
    row = Row(
        row=case["calls"],
        table="allowed",
        who=case["who"],
        calls=(case["calls"],),
        resource=(case["resource"],),
        context=case["context"],
        at="aws",
    )
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.partition("\n## What is not promised\n")[2].partition("\n## ")[0]

    assert not verdicts(world, evaluator, [row], others=[neighbour])[row.row].surprises
    assert case["words"] in " ".join(section.split())
