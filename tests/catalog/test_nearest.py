"""Suggestions for names that the catalogue does not know."""

from __future__ import annotations

from ultracluster.catalog._nearest import nearest

NAMES = ("p5.48xlarge", "p5en.48xlarge", "p4d.24xlarge", "m5.large")


def test_the_own_family_comes_first_however_unlike_the_rest_is() -> None:
    assert nearest("p4d.metal", NAMES, "p4d", 1) == ["p4d.24xlarge"]


def test_of_two_that_look_as_similar_the_one_that_begins_alike_comes_first() -> None:
    assert nearest("abc", ("xbc", "abd"), "", 2) == ["abd", "xbc"]


def test_at_most_as_many_as_asked_for_and_none_that_resembles_nothing() -> None:
    assert len(nearest("p5.48xlarg", NAMES, "p5", 2)) == 2
    assert nearest("zzz", NAMES, "zzz", 3) == []
    assert nearest("", NAMES, "", 3) == []
