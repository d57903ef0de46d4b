"""Rules on people, each broken and mended; and how they resolve to accounts."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from rules_table import Case, cases, found, table_tests

from ultracluster.config.users import User
from ultracluster.rules import check
from ultracluster.rules.sets import USR

ROLE = "arn:aws:iam::111122223333:role/"


def public_key(*parts: bytes, kind: str = "ssh-ed25519") -> str:
    blob = b"".join(struct.pack(">I", len(part)) + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(blob).decode()}"


KEY, OTHER = public_key(bytes(range(32))), public_key(bytes(range(1, 33)))


def case(
    rule: str,
    broken: dict[str, Any],
    at: str,
    says: str,
    instead: str,
    mended: dict[str, Any],
    base: str = "prod",
) -> Case:
    return Case(rule, broken, at, says, instead, mended, base)


def users(**given: dict[str, Any]) -> dict[str, Any]:
    """With a key each."""
    return {"users": {name: {"keys": [OTHER if name == "bob" else KEY]} | one for name, one in given.items()}}


ALICE, BOB = {"uid": 2001}, {"uid": 2002}
CASES = [
    *cases("people"),
    case(
        "USR002",
        users(alice=ALICE | {"gid": 3000}, bob=BOB | {"gid": 3000}),
        "users.bob.gid",
        "`alice`'s own, and has no other name",
        "groups: [{team: 3000}]",
        users(alice=ALICE | {"gid": 3000, "groups": [{"vision": 3000}]}, bob=BOB | {"gid": 3000}),
    ),
    case(
        "USR002",
        users(alice=ALICE | {"groups": [{"bob": 3000}]}, bob=BOB),
        "users.bob.uid",
        "`bob` is a group with the id 3000 already",
        "gid: 3000",
        users(alice=ALICE | {"groups": [{"bob": 3000}]}, bob=BOB | {"gid": 3000}),
    ),
    case(
        "USR011",
        users(alice=ALICE, bob=BOB | {"keys": [f"{KEY} another comment"]}),
        "users.bob.keys[0]",
        "`alice` has the same",
        "remove it",
        users(alice=ALICE, bob=BOB),
    ),
]


test_breaks_and_is_mended = table_tests(cases=CASES)[0]  # two people of one number: nothing can be advised


@pytest.mark.parametrize("base", ["dev", "prod", "pcs-p6-b200", "parallelcluster-p5", "eks-p5en"])
def test_an_environment_without_users_has_no_findings(base: str) -> None:
    assert found(USR, {}, base) == []


def test_a_user_is_judged_without_a_file() -> None:
    assert [one.code for one in check(User(uid=2001))] == ["USR009"]


def test_a_whole_cluster_of_people_has_no_findings() -> None:
    given = {
        "users": {
            "alice": {"uid": 2001, "groups": [{"vision": 3000}], "keys": [KEY], "team": "research"},
            "bob": {"uid": 2002, "gid": 3000, "groups": ["alice"], "principals": [f"{ROLE}bob"]},
        },
        "teams": {"research": {"quota": 8, "users": ["bob"]}},
    }
    assert found(USR, given, "prod") == []
