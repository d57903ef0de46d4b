"""No role gets more rights in two steps, but for the ways that are listed with their reason."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from iam_proof.environments import EVERY, config_of
from iam_proof.escalation import Pair, Way, accepted, pairs, table, ways
from iam_proof.rights import in_words, right_of, rights_of
from project import ROOT

Found = Callable[[str], set[Way]]
OF_IMAGES = "images/"
"""Roles of no environment: tests/lifecycle/test_image_pipeline.py."""


@pytest.fixture(scope="session")
def found(templates_of: Callable[[str], dict[str, Any]]) -> Found:
    def get(name: str) -> set[Way]:
        config = config_of(name)
        return ways(rights_of(in_words(config, templates_of(name))), config)

    return cache(get)


@pytest.mark.parametrize("name", EVERY)
def test_there_is_no_way_to_more_rights(name: str, found: Found) -> None:
    assert {one for one in found(name) if not any(row.covers(one) for row in accepted())} == set()


def test_each_accepted_way_is_there(found: Found) -> None:
    """A right that was narrowed takes its row along."""
    there = {one for name in EVERY for one in found(name)}

    of_environments = [row for row in accepted() if not row.roles[0].startswith(OF_IMAGES)]
    assert [(row.pair, left) for row in of_environments if (left := row.unused(there))] == []


@pytest.mark.parametrize("row", [one for one in accepted() if one.page], ids=lambda row: row.page)
def test_the_page_promises_nothing_else(row: Any) -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.partition("## What is not promised\n")[2].partition("\n## ")[0]

    assert row.page in " ".join(section.split())


def test_each_accepted_way_has_a_reason_and_each_pair_a_source() -> None:
    assert all(row.why for row in accepted())
    assert all(one["source"] and isinstance(one["date"], dt.date) for one in table()["pairs"])


# The search can say no


def role(*statements: dict[str, Any]) -> set[Way]:
    rights = [
        right_of({"Sid": f"S{number}", "Effect": "Allow", **one}) for number, one in enumerate(statements)
    ]
    return ways(rights, config_of("prod"))


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.pair)
def test_each_pair_is_found(pair: Pair) -> None:
    for first, then in itertools.product(pair.first, pair.then or [""]):
        second = [{"Action": then, "Resource": "arn:x"}] if then else []
        on = pair.resources.replace("*", "/x")
        condition = {"StringEquals": {"iam:PassedToService": pair.passed_to}} if pair.passed_to else {}
        made = role({"Action": first, "Resource": on, "Condition": condition}, *second)

        assert pair.pair in {one.pair for one in made}, (first, then)


@pytest.mark.parametrize("pair", [one for one in pairs() if one.stops], ids=lambda pair: pair.pair)
def test_a_condition_closes_the_way(pair: Pair) -> None:
    for key in pair.stops:
        for first in pair.first:
            condition = {"StringEquals": {key: "x"}}
            assert pair.pair not in {
                w.pair for w in role({"Action": first, "Resource": "arn:x", "Condition": condition})
            }


def test_a_role_that_passes_itself_or_to_another_service_starts_nothing() -> None:
    start = {"Action": "ec2:RunInstances", "Resource": "arn:x"}
    to = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    pair = "pass a role, then start an instance with it"

    assert pair not in {
        one.pair for one in role({"Action": "iam:PassRole", "Resource": "x/", "Condition": {}}, start)
    }
    passes = {"Action": "iam:PassRole", "Resource": "arn:aws:iam::1:role/other", "Condition": to}
    assert pair not in {one.pair for one in role(passes, start)}


INSTANCES = "arn:aws:ssm:us-east-2:111122223333:managed-instance/*"
ENTER = {
    "Action": "ssm:StartSession",
    "Resource": INSTANCES,
    "Condition": {"StringEquals": {"ssm:resourceTag/owner": "prod"}},
}


@pytest.mark.parametrize(
    ("condition", "there"),
    [
        ({}, True),
        ({"StringEquals": {"aws:RequestTag/owner": "prod"}}, True),
        ({"StringEqualsIfExists": {"aws:ResourceTag/owner": "prod"}}, True),
        ({"Null": {"aws:ResourceTag/owner": "true"}}, True),
        ({"StringEquals": {"aws:ResourceTag/owner": "prod"}}, False),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["name"]}}, False),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["name", "owner"]}}, True),
        (
            {
                "ForAllValues:StringEquals": {"aws:TagKeys": ["owner"]},
                "StringEquals": {"aws:ResourceTag/owner": "prod"},
            },
            False,
        ),
        ({"Null": {"aws:RequestTag/owner": "true"}}, False),
    ],
    ids=str,
)
def test_who_tags_may_act_by_the_tag(condition: dict[str, Any], there: bool) -> None:
    tag = {"Action": "ssm:AddTagsToResource", "Resource": INSTANCES, "Condition": condition}

    assert ("tag, then act by the tag" in {one.pair for one in role(tag, ENTER)}) is there


def test_a_tag_that_is_given_only_while_a_thing_is_made_opens_nothing() -> None:
    volumes = "arn:aws:ec2:us-east-2:111122223333:volume/*"
    owned = {"StringEquals": {"aws:ResourceTag/owner": "prod"}}
    act = {"Action": "ec2:DeleteVolume", "Resource": volumes, "Condition": owned}
    tag = {"Action": "ec2:CreateTags", "Resource": volumes}
    making = {"StringEquals": {"ec2:CreateAction": "CreateVolume"}}

    pair = "tag, then act by the tag"
    assert pair in {one.pair for one in role(tag, act)}
    assert role({**tag, "Condition": making}, act) == set()
    assert pair not in {
        one.pair for one in role({**tag, "Resource": volumes.replace("volume", "snapshot")}, act)
    }


def test_a_tag_that_names_no_cluster_and_a_write_without_bounds_are_found() -> None:
    delete = {"Action": "sagemaker:DeleteEndpoint", "Resource": "arn:aws:sagemaker:us-east-2:1:endpoint/*"}
    tagged = {**delete, "Condition": {"StringEquals": {"aws:ResourceTag/CreatedBy": "Operator"}}}
    ours = {**delete, "Condition": {"StringEquals": {"aws:ResourceTag/cluster": "prod"}}}
    unless = {**tagged["Condition"], "StringEqualsIfExists": {"aws:ResourceTag/cluster": "prod"}}

    assert {one.pair for one in role(tagged)} == {"a tag that every cluster gives"}
    assert {one.pair for one in role({**delete, "Condition": unless})} == {"a tag that every cluster gives"}
    assert role(ours) == set()
    assert {one.pair for one in role({**delete, "Resource": "*"})} == {"a write on everything"}
    assert {one.pair for one in role(delete)} == {"a write on all things of a kind"}
    assert role({"Action": "sagemaker:DescribeEndpoint", "Resource": "*"}) == set()
