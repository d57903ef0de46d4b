"""Both tables, row by row, for every environment: what must be allowed is, what must be denied is."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from iam_proof.environments import EVERY, NAMES, rows_for
from iam_proof.evaluator import Evaluator
from iam_proof.names import names_of
from iam_proof.people import nodes
from iam_proof.rows import Row, rows
from iam_proof.verdicts import Verdict, verdicts
from iam_proof.world import World
from project import ENVIRONMENTS

Worlds = Callable[[str], tuple[World, World]]
Answered = Callable[[str], dict[str, Verdict]]


@pytest.mark.parametrize("name", EVERY)
def test_an_environment_is_as_the_tables_say(name: str, answered: Answered) -> None:
    found = answered(name)

    assert {row: one.surprises for row, one in found.items() if one.surprises} == {}
    assert found.keys() == {one.row for one in rows_for(name)}
    assert {one.row.table for one in found.values()} == {"allowed", "denied"}


def test_every_row_is_about_some_environment() -> None:
    asked = {one.row for name in NAMES for one in rows_for(name)}

    assert not [one.row for table in ("allowed", "denied") for one in rows(table) if one.row not in asked]
    assert all(one.why for one in rows("allowed"))


def test_a_missing_route_is_no_denial(evaluator: Evaluator, worlds: Worlds) -> None:
    """IAM has no endpoint in a closed network; what a node's role may do there, a laptop does with it."""
    world, neighbour = worlds("prod")
    row = Row(
        row="nodes change no roles",
        table="denied",
        who="compute",
        calls=("iam:PutRolePolicy",),
        resource=("arn:aws:iam::{account}:role/administrator",),
    )
    policy = nodes(world)["compute"][0].identity[-1]
    more = {"Effect": "Allow", "Action": "iam:*", "Resource": "*"}
    seeded = {**world.policies[policy], "Statement": [*world.policies[policy]["Statement"], more]}

    right = verdicts(world, evaluator, [row], others=[neighbour])[row.row]
    found = verdicts(world, evaluator, [row], others=[neighbour], instead={policy: seeded})[row.row]

    assert world.closed and "iam" not in world.endpoints
    assert right.outcomes and not right.surprises
    assert found.surprises


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_role_has_something_that_it_must_be_allowed(
    name: str, answered: Answered, worlds: Worlds
) -> None:
    """A role that nobody asks about is one whose rights nobody looked at."""
    world, _ = worlds(name)
    asked = {
        outcome.call.who.role
        for verdict in answered(name).values()
        if verdict.row.table == "allowed"
        for outcome in verdict.outcomes
    }

    assert not {arn for arn in world.roles if arn not in asked}


@pytest.mark.parametrize("name", NAMES)
def test_every_role_is_taken_by_someone(name: str, answered: Answered, worlds: Worlds) -> None:
    world, _ = worlds(name)
    taken = {
        outcome.call.resource
        for verdict in answered(name).values()
        if verdict.row.table == "allowed"
        and {"sts:AssumeRole", "sts:AssumeRoleWithWebIdentity"} & set(verdict.row.calls)
        for outcome in verdict.outcomes
    }

    assert not {arn for arn in world.roles if arn not in taken}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_about_is_resolved(name: str, worlds: Worlds) -> None:
    """What has no ARN here would match no policy, and be denied for that reason alone."""
    world, other = worlds(name)

    assert "unresolved:" not in json.dumps([world.policies, names_of(world, other)])


@pytest.mark.parametrize("name", NAMES)
def test_endpoints_tell_callers_by_conditions(name: str, worlds: Worlds) -> None:
    """The evaluator takes no other principals of an endpoint's policy; EC2 neither, for gateways."""
    world, _ = worlds(name)
    for service, (_, _, policy) in world.endpoints.items():
        for statement in world.policies[policy]["Statement"]:
            assert statement["Principal"] in ("*", {"AWS": "*"}), service
