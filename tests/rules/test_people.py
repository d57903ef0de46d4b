"""Rules on people, each broken and mended; and how they resolve to accounts."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from rules_table import Case, found, table_tests

from ultracluster.config.users import User
from ultracluster.rules import check
from ultracluster.rules.sets import USR

ROLE = "arn:aws:iam::111122223333:role/"


def public_key(*parts: bytes, kind: str = "ssh-ed25519") -> str:
    blob = b"".join(struct.pack(">I", len(part)) + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(blob).decode()}"


KEY, OTHER = public_key(bytes(range(32))), public_key(bytes(range(1, 33)))
RSA = public_key(b"\1\0\1", bytes(129), kind="ssh-rsa")


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
    case(
        "USR001", users(alice=ALICE, bob=ALICE), "users.bob.uid", "`alice` has the id 2001", "2000",
        users(alice=ALICE, bob=BOB),
    ),
    case(
        "USR002",
        users(alice=ALICE | {"groups": [{"vision": 3000}]}, bob=BOB | {"groups": [{"vision": 3001}]}),
        "users.bob.groups[0].vision", "has the id 3000 with another user", "3000",
        users(alice=ALICE, bob=BOB),
    ),
    case(
        "USR002", users(alice=ALICE | {"groups": [{"vision": 3000}, {"data": 3000}]}),
        "users.alice.groups[1].data", "is the group `vision`'s", "2000", users(alice=ALICE),
    ),
    case(
        "USR002", users(alice=ALICE | {"gid": 3000}, bob=BOB | {"gid": 3000}), "users.bob.gid",
        "`alice`'s own, and has no other name", "groups: [{team: 3000}]",
        users(alice=ALICE | {"gid": 3000, "groups": [{"vision": 3000}]}, bob=BOB | {"gid": 3000}),
    ),
    case(
        "USR002", users(alice=ALICE | {"groups": [{"bob": 3000}]}, bob=BOB), "users.bob.uid",
        "`bob` is a group with the id 3000 already", "gid: 3000",
        users(alice=ALICE | {"groups": [{"bob": 3000}]}, bob=BOB | {"gid": 3000}),
    ),
    case(
        "USR003", users(alice=ALICE | {"groups": ["vision"]}), "users.alice.groups[0]",
        "nobody gives the group `vision` an id", "vision: 2000", users(alice=ALICE),
    ),
    case(
        "USR004", users(root=ALICE), "users.root", "the system's", "root-2", users(alice=ALICE),
    ),
    case(
        "USR004", users(alice=ALICE | {"groups": [{"docker": 3000}]}), "users.alice.groups[0]",
        "make their members root", "docker-2", users(alice=ALICE),
    ),
    case("USR005", users(alice={"uid": 1000}), "users.alice.uid", "may sudo", "2000", users(alice=ALICE)),
    case("USR005", users(alice={"uid": 500}), "users.alice.uid", "(0 to 999)", "2000", users(alice=ALICE)),
    case("USR005", users(alice={"uid": 4999}), "users.alice.uid", "sessions", "2000", users(alice=ALICE)),
    case("USR005", users(alice={"uid": 65534}), "users.alice.uid", "nobody's", "2000", users(alice=ALICE)),
    case(
        "USR005", users(alice=ALICE | {"gid": 64030}), "users.alice.gid", "packages", "2000",
        users(alice=ALICE),
    ),
    case(
        "USR005", users(alice=ALICE | {"groups": [{"vision": 999}]}), "users.alice.groups[0].vision",
        "(0 to 999)", "2000", users(alice=ALICE),
    ),
    case(
        "USR006", users(alice=ALICE | {"team": "reserch"}) | {"teams": {"research": {}}}, "users.alice.team",
        "no team `reserch`", "research", {"users.alice.team": "research"},
    ),
    case(
        "USR007", users(alice=ALICE | {"team": "b"}) | {"teams": {"a": {"users": ["alice"]}, "b": {}}},
        "teams.a.users[0]", "`alice` is in `b` as well", "remove it", {"users.alice.team": "a"},
    ),
    case(
        "USR008", users(alice=ALICE) | {"teams": {"a": {"users": ["alic"]}}}, "teams.a.users[0]",
        "`alic` is not among the users", "alice", {"teams.a.users": ["alice"]},
    ),
    case(
        "USR010", users(alice=ALICE | {"keys": [KEY[:-8]]}), "users.alice.keys[0]", "its end is missing",
        "remove it", users(alice=ALICE),
    ),
    case(
        "USR010", users(alice=ALICE | {"keys": [RSA]}), "users.alice.keys[0]", "less than 2048 bits",
        "remove it", users(alice=ALICE),
    ),
    case(
        "USR011", users(alice=ALICE, bob=BOB | {"keys": [f"{KEY} another comment"]}), "users.bob.keys[0]",
        "`alice` has the same", "remove it", users(alice=ALICE, bob=BOB),
    ),
    case(
        "USR012", users(alice=ALICE | {"principals": [f"{ROLE}*"]}), "users.alice.principals[0]",
        "every role", "role/name-of-the-role", {"users.alice.principals": [f"{ROLE}alice-*"]},
    ),
    case(
        "USR013", users(alice=ALICE), "users", "no accounts on nodes", "members of a team", {"users": {}},
        base="hyperpod-eks-p5",
    ),
    case(
        "USR014", users(alice=ALICE) | {"orchestrator.lifecycle": "none"}, "users", "lifecycle is `none`",
        "remove users", {"users": {}}, base="dev",
    ),
    case(
        "USR015", users(alice=ALICE) | {"storage.openzfs": None, "storage.lustre": None}, "users",
        "homes of its own", "storage.openzfs", {"users": {}}, base="dev",
    ),
    case(
        "USR016", users(alice=ALICE) | {"access": {"metadata_users": ["alice"]}}, "access.metadata_users[0]",
        "is a person", "remove it", {"access": {}},
    ),
    case(
        "USR017", users(alice=ALICE) | {"access": {"session_user": "alice"}}, "access.session_user",
        "one person's account", "remove session_user", {"access": {}},
    ),
]  # fmt: skip


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
