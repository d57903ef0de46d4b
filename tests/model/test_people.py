"""What accounts an environment comes to, with every id fixed, and where homes are."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.model.people import Homes, homes_of, people, team_users


def made(users: dict[str, Any], base: str = "dev", **more: Any) -> Any:
    return people(resolve(environment({"users": users, **more}, base=base)))


def test_each_user_has_a_group_with_the_same_id_by_default() -> None:
    found = made({"bob": {"uid": 2002}, "alice": {"uid": 2001}})
    assert [(one.name, one.uid, one.gid) for one in found.accounts] == [
        ("alice", 2001, 2001),
        ("bob", 2002, 2002),
    ]
    assert found.groups == {"alice": 2001, "bob": 2002}


def test_a_group_that_is_named_is_the_own_group_of_those_with_its_id() -> None:
    found = made(
        {
            "alice": {"uid": 2001, "gid": 3000, "groups": ["bob"]},
            "bob": {"uid": 2002, "groups": [{"vision": 3000}]},
        }
    )
    assert found.groups == {"bob": 2002, "vision": 3000}
    alice, bob = found.accounts
    assert (alice.gid, alice.groups, bob.groups) == (3000, ("bob",), ("vision",))


def test_what_rules_refuse_is_worked_out_all_the_same() -> None:
    """A group without an id is left out, and of two that clash the first counts."""
    found = made(
        {
            "alice": {"uid": 2001, "groups": ["none", {"vision": 3000}]},
            "bob": {"uid": 2002, "groups": [{"vision": 9}]},
        }
    )
    assert found.groups == {"alice": 2001, "bob": 2002, "vision": 3000}
    assert found.accounts[0].groups == ("vision",)


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("dev", {}, Homes(root="/fsx/home", mount="/fsx")),
        ("prod", {}, Homes(root="/home", mount="/home")),
        (
            "parallelcluster-p5",
            {"storage.openzfs": None},
            Homes(root="/home", mount="/home", by_controller=True),
        ),
        ("dev", {"storage.lustre": None}, Homes(root="/home", mount=None)),
    ],
)
def test_homes_are_on_what_is_shared(base: str, changes: dict[str, Any], expected: Homes) -> None:
    assert homes_of(resolve(environment(changes, base=base))) == expected


def test_members_of_a_team_are_those_whom_it_names_and_those_who_name_it() -> None:
    users = {"alice": {"uid": 2001, "team": "a"}, "bob": {"uid": 2002, "team": "a"}}
    config = environment(
        {"users": users, "teams": {"a": {"users": ["carol", "alice"]}, "b": {}}}, base="prod"
    )
    assert team_users(config, "a") == ("carol", "alice", "bob")
    assert team_users(config, "b") == team_users(config, "none") == ()
