"""Managed policies of AWS that roles of ours write out: nothing is lost, and AWS's additions are seen."""

from __future__ import annotations

import copy
import datetime as dt
from functools import cache
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from templates import assembly, many, statements
from wish_cases import OVERLAYS

from tools import facts
from tools.managed_policies import actions, differences, lacking, newest, recorded
from ultracluster.config import load

FILES = [*(f"environments/{name}.yaml" for name in ENVIRONMENTS), *OVERLAYS]


@cache
def words(file: str) -> frozenset[str]:
    """With which rows of the record say whom they are about."""
    orchestrator = load(ROOT / file).environment.orchestrator
    spaces = {"spaces"} if getattr(orchestrator, "spaces", None) else set()
    return frozenset({orchestrator.kind, *spaces})


def cases() -> list[Any]:
    return [
        pytest.param(file, name, id=f"{file}: {name}")
        for file in FILES
        for name, one in recorded().items()
        if words(file) & set(one["of"]["kinds"])
    ]


@pytest.mark.parametrize(("file", "name"), cases())
def test_a_role_has_all_that_the_policy_allows(file: str, name: str) -> None:
    row = recorded()[name]
    environment = load(ROOT / file).environment
    template = assembly(environment, checked=False).templates[environment.stack_name(row["of"]["stack"])]
    by_role: dict[str, set[str]] = {}
    for logical, one in statements(template):
        if logical.startswith(row["of"]["role"]) and one["Effect"] == "Allow":
            by_role.setdefault(logical, set()).update(many(one["Action"]))

    if row["of"]["role"] == "NodeRole" and not environment.groups("system"):
        assert not by_role
        return
    assert by_role
    assert not [(role, found) for role, ours in by_role.items() if (found := lacking(row, ours))]


def test_every_row_is_about_some_environment_and_leaves_out_what_there_is() -> None:
    asked = {param.values[1] for param in cases()}
    assert asked == recorded().keys()
    for name, row in recorded().items():
        assert all(
            lacking({**row, "left_out": {}}, {one}) != actions(row["statements"]) for one in row["left_out"]
        ), name
        assert all(row["left_out"].values())


def test_the_record_is_that_of_the_newest_policies() -> None:
    assert list(differences(recorded(), newest())) == []


def one_more(policy: Any) -> None:
    statement = {"Effect": "Allow", "Action": ["sagemaker:NewAction"], "Resource": "*"}
    policy["statements"].append(statement)


def one_less(policy: Any) -> None:
    policy["statements"].pop()


def elsewhere(policy: Any) -> None:
    policy["statements"][0]["Resource"] = "arn:aws:s3:::else"


@pytest.mark.parametrize(
    ("change", "kind", "words_of_it"),
    [
        (one_more, "new", "allows sagemaker:NewAction"),
        (one_less, "gone", "no longer allows"),
        (elsewhere, "changed", "resources or conditions"),
    ],
)
def test_a_policy_that_aws_changes_is_work_to_do(
    change: Any, kind: str, words_of_it: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "AmazonSageMakerClusterInstanceRolePolicy"
    theirs: Any = copy.deepcopy({one: newest()[one] for one in recorded()})
    change(theirs[name])
    monkeypatch.setattr("tools.managed_policies.newest", lambda: theirs)

    lines = [one for one in facts.everything(dt.date(2026, 11, 27)) if one.where == "managed_policies.json"]

    assert lines and all(one.due and name in one.what for one in lines)
    assert {one.kind for one in lines} == {kind} and words_of_it in lines[0].what


def test_a_policy_that_is_no_more_is_told() -> None:
    name = next(iter(recorded()))
    rest = {one: row for one, row in newest().items() if one != name}
    assert list(differences(recorded(), rest)) == [("gone", f"{name}: moto has no such policy")]


def test_a_role_that_lacks_an_action_is_seen() -> None:
    row = recorded()["AmazonEKS_CNI_Policy"]
    ours = actions(row["statements"])
    assert lacking(row, ours) == set()
    assert lacking(row, ours - {"ec2:AssignPrivateIpAddresses"}) == {"ec2:AssignPrivateIpAddresses"}
    assert lacking(row, {"ec2:*"}) == set()
