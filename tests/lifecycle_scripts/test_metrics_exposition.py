"""Whatever a collector hands over, node_exporter reads an exposition: parsed by Prometheus' own parser."""

from __future__ import annotations

import math
import subprocess
from typing import Any

import pytest
from depth import examples
from expositions import series
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metrics_node import module
from needs import path_of

exposition: Any = module("exposition")
FAMILIES = {
    "ultracluster_a": ("gauge", "A gauge"),
    "ultracluster_b_total": ("counter", "A counter"),
    "ultracluster_c_seconds": ("histogram", "A histogram"),
}
VALUES = (
    st.integers()
    | st.floats()
    | st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.integers(min_value=10**300)
)
PAIRS = st.lists(st.tuples(VALUES, VALUES) | st.lists(VALUES, max_size=3), max_size=4)
HISTOGRAMS = st.builds(exposition.Histogram, PAIRS | VALUES, VALUES, VALUES) | st.builds(
    lambda counts, total: exposition.Histogram(
        [[at + 1, sum(counts[: at + 1])] for at in range(len(counts))], total, sum(counts) + 1
    ),
    st.lists(st.integers(min_value=0, max_value=9), max_size=4),
    st.floats(min_value=0, max_value=9),
)
KEYS = st.sampled_from(["job_id", "rank", "le", "model"]) | st.text(max_size=6)
TEXTS = st.text(max_size=8) | st.text(alphabet='"\\\n\r\0{}=, \ud800', max_size=6) | st.integers()
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from([*FAMILIES, "other", 'x{a="b"} 1\ny']),
        st.dictionaries(KEYS, TEXTS, max_size=3) | st.none(),
        VALUES | HISTOGRAMS,
    ),
    max_size=12,
)


def checked(text: str) -> str:
    """What promtool says against it; empty where it can be read."""
    program = path_of("promtool")
    done = subprocess.run(
        [program, "check", "metrics"], input=text.encode(), capture_output=True, check=False
    )
    said = (done.stdout + done.stderr).decode()
    return said if done.returncode not in (0, 3) or "error while" in said else ""


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SAMPLES, min_size=4, max_size=6))
def test_garbage_never_breaks_a_file(rounds: list[list[Any]]) -> None:
    text, refused = exposition.render(FAMILIES, [sample for one in rounds for sample in one])

    found = [(name, tuple(sorted(labels.items()))) for name, labels, _ in series(text)]
    assert len(found) == len(set(found)), "twice the same series: node_exporter would answer with an error"
    assert all(math.isfinite(value) for _, _, value in series(text))
    assert text == "" or not (said := checked(text)), said
    assert 0 <= refused <= sum(map(len, rounds))


def rendered(*samples: tuple[str, dict[str, str], Any], most: int = 100) -> tuple[list[str], int]:
    text, refused = exposition.render(FAMILIES, samples, most)
    return [line for line in text.splitlines() if not line.startswith("#")], refused


def test_of_two_alike_the_first_counts() -> None:
    assert rendered(
        ("ultracluster_a", {"x": "1", "y": "2"}, 1), ("ultracluster_a", {"y": "2", "x": "1"}, 2)
    ) == (['ultracluster_a{x="1",y="2"} 1'], 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, [1], 10**400])
def test_a_value_that_is_no_finite_number_is_left_out(value: object) -> None:
    assert rendered(("ultracluster_a", {}, value), ("ultracluster_a", {"x": "1"}, 2)) == (
        ['ultracluster_a{x="1"} 2'],
        1,
    )


def test_a_counter_below_zero_is_none() -> None:
    assert rendered(("ultracluster_b_total", {}, -1), ("ultracluster_a", {}, -1)) == (
        ["ultracluster_a -1"],
        1,
    )


def test_a_label_is_escaped_and_cut() -> None:
    lines, refused = rendered(("ultracluster_a", {"x": 'a"b\\c\nd\0' + "z" * 500}, 1))

    assert refused == 0
    assert lines[0].startswith('ultracluster_a{x="a\\"b\\\\c\\nd?zzz')
    assert len(lines[0]) < 250


@pytest.mark.parametrize("label", ["__name__", "a-b", "", "1a", 'a="b",c', "a" * 80])
def test_a_label_that_prometheus_does_not_take_costs_its_sample(label: str) -> None:
    assert rendered(("ultracluster_a", {label: "x"}, 1)) == ([], 1)


@pytest.mark.parametrize(
    ("buckets", "total", "count"),
    [
        ([[1, 5], [0.5, 6]], 1, 6),
        ([[1, 5], [1, 6]], 1, 6),
        ([[1, 5], [2, 4]], 1, 6),
        ([[1, 7]], 1, 6),
        ([[1, -1]], 1, 6),
        ([["1", 1]], 1, 6),
        ([[math.nan, 1]], 1, 6),
        ([1, 2], 1, 6),
        ({"1": 2}, 1, 6),
        ([[1, 1]], math.nan, 6),
        ([[1, 1]], 1, None),
    ],
)
def test_a_histogram_that_is_none_is_left_out(buckets: object, total: object, count: object) -> None:
    histogram = exposition.Histogram(buckets, total, count)

    assert rendered(("ultracluster_c_seconds", {}, histogram)) == ([], 1)


def test_a_histogram_has_its_last_bucket_sum_and_count() -> None:
    lines, _ = rendered(("ultracluster_c_seconds", {"model": "m"}, exposition.Histogram([[0.5, 2]], 1.5, 3)))

    assert lines == [
        'ultracluster_c_seconds_bucket{model="m",le="0.5"} 2',
        'ultracluster_c_seconds_bucket{model="m",le="+Inf"} 3',
        'ultracluster_c_seconds_sum{model="m"} 1.5',
        'ultracluster_c_seconds_count{model="m"} 3',
    ]


def test_lines_are_limited() -> None:
    lines, refused = rendered(*(("ultracluster_a", {"x": str(one)}, one) for one in range(20)), most=5)

    assert (len(lines), refused) == (5, 15)
