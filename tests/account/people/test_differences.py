"""How two documents of users differ, and what no node would do."""

from __future__ import annotations

from typing import Any

import pytest

from ultracluster.account.people.differences import differences, groups_changed, impossible, is_most


def user(name: str, uid: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": uid, "gid": uid, "groups": [], "keys": []} | more


def document(*users: dict[str, Any], **groups: int) -> dict[str, Any]:
    return {"users": list(users), "groups": [{"name": name, "gid": gid} for name, gid in groups.items()]}


ALICE, BOB, CAROL = user("alice", 2001), user("bob", 2002), user("carol", 2003)


def kinds(old: Any, new: Any) -> dict[str, str]:
    return {difference.name: difference.kind for difference in differences(old, new)}


def test_users_are_new_changed_removed_or_the_same() -> None:
    new = document(ALICE, BOB | {"groups": ["vision"]}, user("dave", 2004))
    expected = {"alice": "same", "bob": "changed", "carol": "removed", "dave": "new"}
    assert kinds(document(ALICE, BOB, CAROL), new) == expected
    assert kinds(None, new) == dict.fromkeys(("alice", "bob", "dave"), "new")


def test_what_is_changed_is_said() -> None:
    (found,) = differences(
        document(ALICE), document(ALICE | {"groups": ["vision"], "keys": ["a"], "gid": 3000})
    )
    assert found.details == ("gid: 2001 -> 3000", "groups: none -> vision", "keys: 0 -> 1")


def test_a_group_with_another_id_leaves_files_behind() -> None:
    found = groups_changed(document(vision=3000, data=3001), document(vision=3005, data=3001, new=3002))
    assert found == ["group vision: 3000 -> 3005; files of 3000 stay so"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (document(ALICE), document(ALICE | {"uid": 2009}), "the id 2001 cannot become 2009"),
        (document(ALICE), document(user("al", 2001)), "the id 2001 is alice's, whose files stay"),
        (document(ALICE, BOB), document(user("alice", 2002), user("bob", 2001)), "cannot become"),
    ],
)
def test_ids_never_change_hands(old: Any, new: Any, says: str) -> None:
    assert says in impossible(old, new)[0]
    assert impossible(new, new) == impossible(None, new) == []


def test_more_than_half_is_most() -> None:
    four = document(ALICE, BOB, CAROL, user("dave", 2004))
    assert not is_most(differences(four, document(ALICE, BOB)))
    assert is_most(differences(four, document(ALICE, user("erin", 2005))))
    assert is_most(differences(document(ALICE), document()))
    assert not is_most(differences(None, four))


@pytest.mark.parametrize("old", [{}, {"users": 7}, {"users": [1, {}, {"uid": 1}], "groups": [None]}])
def test_what_somebody_else_wrote_is_read_as_far_as_it_goes(old: Any) -> None:
    assert kinds(old, document(ALICE)) == {"alice": "new"}
    assert groups_changed(old, document(vision=3000)) == []
