"""The drawing of a blast radius: nothing on top of something else, the worst inside."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist
from xml.etree import ElementTree

import pytest

from ultracluster.change import Verdict
from ultracluster.change.radius_rings import SIZE, places, radius, rings

SVG = "{http://www.w3.org/2000/svg}"


def test_the_worse_the_nearer_to_the_middle() -> None:
    sizes = [radius(verdict) for verdict in Verdict]
    assert all(one > next_one for one, next_one in pairwise(sizes))
    assert max(sizes) + 8 < SIZE / 2


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("count", [1, 2, 7, 5000])
def test_dots_of_a_ring_keep_apart(verdict: Verdict, count: int) -> None:
    found = places(verdict, count)

    assert 0 < len(found) <= count
    assert all(dist(one, other) > 11 for one, other in combinations(found, 2))
    assert all(0 < x < SIZE and 0 < y < SIZE for x, y in found)


def test_each_dot_says_whose_it_is() -> None:
    svg = rings({"a/<b>": Verdict.REPLACED, "c": Verdict.NO_OP}, "old -> new")
    root = ElementTree.XML(svg)

    dots = [one for one in root.iter(f"{SVG}circle") if one.get("class") == "dot"]
    assert [dot.findtext(f"{SVG}title") for dot in dots] == ["c: no-op", "a/<b>: replaced"]
    assert root.findtext(f"{SVG}title") == "blast radius of old -> new"
