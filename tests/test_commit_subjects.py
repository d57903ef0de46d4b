"""Subjects of commits: imperative, short, finished."""

from __future__ import annotations

import pytest

from tools.commit_subjects import problems

GOOD = ["Refuse a second environment of one name", "Re-read the state of a node", "Embed the key", "Pass on"]


@pytest.mark.parametrize("subject", GOOD)
def test_a_subject_that_says_what_changed_is_accepted(subject: str) -> None:
    assert list(problems(subject)) == []


@pytest.mark.parametrize(
    ("subject", "parents", "says"),
    [
        ("Merge int17", 2, "a merge commit"),
        ("wip2", 1, "unfinished work"),
        ("Fix the lock (WIP)", 1, "unfinished work"),
        ("fixup! Fix the lock", 1, "unfinished work"),
        ("Fixed the lock", 1, "use the imperative"),
        ("Fixes the lock", 1, "use the imperative"),
        ("Fixing the lock", 1, "use the imperative"),
        ("fix the lock", 1, "a capital letter"),
        ("F" + "ix" * 40, 1, "81 characters"),
        ("Fix the lock.", 1, "full stop"),
    ],
)
def test_other_subjects_are_refused(subject: str, parents: int, says: str) -> None:
    assert any(says in problem for problem in problems(subject, parents))
