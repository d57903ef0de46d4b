"""What nodes call must be allowed: scripts, user data, agents; and what a deploy calls by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from iam_proof.allow_list import rows as rights_rows
from iam_proof.environments import NAMES, config_of
from iam_proof.evaluator import Evaluator, Request
from iam_proof.rows import TABLES, facts_of, rows
from iam_proof.scripts import SDK, actions_in, scripts, user_data
from iam_proof.verdicts import Verdict
from iam_proof.world import World
from project import ROOT

AGENTS: list[dict[str, Any]] = yaml.safe_load((TABLES / "agents.yaml").read_text(encoding="utf-8"))["agents"]
NODES = {"nodes", "controller", "login", "compute", "system"}
KINDS = {name: facts_of(config_of(name)) for name in NAMES}
FOLDER = ROOT / "lifecycle_scripts"


def of_nodes() -> set[str]:
    """Actions of rows about nodes."""
    return {call for row in rows("allowed") if NODES & set(row.who.split()) for call in row.calls}


def test_every_call_of_a_script_is_in_the_table() -> None:
    found = {name: actions_in(text) for name, text in scripts(FOLDER)}

    assert {"files/from_s3.sh", "lib/fetch.sh"} <= {name for name, actions in found.items() if actions}
    missing = {name: actions - of_nodes() for name, actions in found.items() if actions - of_nodes()}
    assert not missing, f"rows of allowed.yaml are missing: {missing}"


def test_scripts_call_in_no_other_way() -> None:
    assert not [name for name, text in scripts(FOLDER) if SDK.search(text)]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_of_user_data_is_in_the_table(
    name: str, worlds: Callable[[str], tuple[World, World]]
) -> None:
    world, _ = worlds(name)
    found = {logical: actions_in(text) for logical, text in user_data(world)}

    assert not {logical for logical, actions in found.items() if actions - of_nodes()}
    assert any(found.values()) == (config_of(name).orchestrator.kind == "eks")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent["agent"])
def test_every_call_of_an_agent_is_in_the_table(agent: dict[str, Any]) -> None:
    for kind in agent["of"]:
        about = [facts for facts in KINDS.values() if kind in facts]
        asked = {
            call for row in rows("allowed") for call in row.calls if any(row.holds(facts) for facts in about)
        }
        assert about and not set(agent["calls"].split()) - asked, kind
    assert agent["source"]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_that_a_template_makes_is_in_the_table(
    name: str, worlds: Callable[[str], tuple[World, World]], answered: Callable[[str], dict[str, Verdict]]
) -> None:
    """Of `AwsCustomResource`: calls stand in the template as text, and a role has to allow them."""
    world, _ = worlds(name)
    asked = {
        outcome.call.action.lower()
        for verdict in answered(name).values()
        for outcome in verdict.outcomes
        if verdict.row.table == "allowed" and "AWS679" in outcome.call.who.label
    }
    for logical, mine in world.each("Custom::AWS"):
        for event in ("Create", "Update", "Delete"):
            if call := json.loads(mine.get(event, "{}")):
                # the SDK's name of the service is not IAM's
                service = {"CloudWatchLogs": "logs"}.get(call["service"], call["service"])
                assert f"{service}:{call['action']}".lower() in asked, logical


def test_actions_exist(evaluator: Evaluator) -> None:
    """Tables are typed by hand: an action that no service has would be denied, and prove nothing."""
    asked_about = {call for table in ("allowed", "denied") for row in rows(table) for call in row.calls}
    seeds = yaml.safe_load((TABLES.parent / "seeds.yaml").read_text(encoding="utf-8"))["seeds"]
    rights = {action for row in rights_rows() for action in row.actions}
    calls = sorted(one for one in {*asked_about, *seeds, *rights} if "*" not in one)
    asked = [
        Request(
            principal="arn:aws:iam::111122223333:role/one", action=call, resource="*", account="111122223333"
        )
        for call in calls
    ]
    unknown = [
        call
        for call, answer in zip(calls, evaluator.ask({}, asked), strict=True)
        if answer.error and "invalid" in answer.error
    ]

    assert len(calls) > 300
    assert not unknown


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("aws s3 cp --only-show-errors s3://a/b c", {"s3:GetObject"}),
        ("said=$(aws --region us-east-1 s3 cp --recursive s3://a b)", {"s3:GetObject", "s3:ListBucket"}),
        ('["aws", "sts", "assume-role", "--region", region]', {"sts:AssumeRole"}),
        ("/usr/local/bin/aws ec2 describe-instances", {"ec2:DescribeInstances"}),
        ("linux-aws linux-image-aws ...", set()),
        ("aws ended with status 1", set()),
        ("echo aws || echo curl", set()),
    ],
)
def test_calls_are_read_from_text(text: str, actions: set[str]) -> None:
    assert actions_in(text) == actions


def test_a_command_of_several_calls_must_be_explained() -> None:
    with pytest.raises(LookupError, match="aws s3 sync: name its actions"):
        actions_in("aws s3 sync s3://a b")
