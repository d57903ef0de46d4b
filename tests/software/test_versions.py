"""The order of versions, by cases, by its laws, and against dpkg where it is there."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import need

from ultracluster.software.versions import Version

pytestmark = pytest.mark.slow

RISING = [
    ["1.22.0", "1.22.0amzn4.0", "1.22.0.1", "1.22.1", "2.1.0amzn3.0", "2.1.0amzn5.0", "2.6.0amzn1.0", "2.10"],
    ["2.17.1", "2.30.4-1", "2.30.7", "2.30.7-1", "2.30.7-1+cuda13.0", "2.30.7-1+cuda13.3", "2.31.2-1"],
    ["570.133.20", "580", "580.65.06", "580.126.20", "580.159.04", "595.91.07", "595.112.07"],
    ["12.8", "13.0.2", "13.2", "13.3.1"],
    ["1.0~rc1", "1.0rc2", "1.0", "1.0-1", "1:0.9"],
    ["6.1.79-99.167", "6.1.82-99.168", "6.8.0-1017-aws", "6.8.0-1024-aws", "6.12", "6.18"],
]
SAME = [
    ("13.3", "13.3.0"),
    ("v2.6", "2.6.0"),
    ("2.6.0amzn1.0", "2.6amzn1"),
    ("580.05", "580.5"),
    ("1.0", "1"),
]

numbers = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(["", "amzn1.0", "amzn4.0", "-1", "-2", "rc1", "~rc2", "+cuda13.0", "-1+cuda12.9"])
versions = st.builds(lambda number, suffix: number + suffix, numbers, suffixes)


@pytest.mark.parametrize("row", RISING, ids=lambda row: row[0])
def test_each_is_newer_than_the_one_before(row: list[str]) -> None:
    for older, newer in pairwise(row):
        assert Version(older) < Version(newer), (older, newer)
        assert not Version(newer) <= Version(older)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_write_one_version(one: str, other: str) -> None:
    assert Version(one) == Version(other)
    assert hash(Version(one)) == hash(Version(other))


@pytest.mark.parametrize(
    ("exact", "series", "is_within"),
    [
        ("25.11.4", "25.11", True),
        ("25.11", "25.11.0", True),
        ("25.1.14", "25.11", False),
        ("25.11", "25.11.4", False),
        ("6.8.0-1017-aws", "6.8.0", True),
        ("6.18.1", "6.1", False),
        ("1:25.11", "25.11", False),
    ],
)
def test_a_version_within_a_series(exact: str, series: str, is_within: bool) -> None:
    assert Version(exact).within(Version(series)) is is_within


@pytest.mark.parametrize("text", ["", "latest", "image", "bundled"])
def test_a_text_without_a_digit_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        Version(text)


@given(versions, versions, versions)
def test_it_is_a_total_order(a: str, b: str, c: str) -> None:
    one, two, three = Version(a), Version(b), Version(c)
    assert one <= two or two <= one
    assert (one <= two and two <= one) == (one == two)
    if one <= two <= three:
        assert one <= three
    assert (one == two) <= (hash(one) == hash(two))


@given(numbers, st.integers(0, 3))
def test_a_larger_number_is_newer(number: str, place: int) -> None:
    parts = [int(part) for part in number.split(".")]
    place %= len(parts)
    raised = [*parts[:place], parts[place] + 1, *parts[place + 1 :]]
    assert Version(number) < Version(".".join(map(str, raised)))


@given(versions)
def test_every_version_is_within_itself(text: str) -> None:
    assert Version(text).within(Version(text))


@settings(max_examples=examples(10), deadline=None)
@given(st.data())
def test_dpkg_agrees(data: st.DataObject) -> None:
    """Debian's own comparison, for forms in which trailing zeros decide nothing."""
    need("dpkg")
    number = st.lists(st.integers(1, 999), min_size=3, max_size=3).map(lambda p: ".".join(map(str, p)))
    form = st.builds(
        lambda n, s: n + s, number, st.sampled_from(["", "amzn1.1", "~rc2", "-1", "-2", "-1+cuda13.3"])
    )
    one, other = data.draw(form), data.draw(form)
    code = subprocess.run(["dpkg", "--compare-versions", one, "lt", other], check=False).returncode
    assert (Version(one) < Version(other)) == (code == 0), (one, other)
