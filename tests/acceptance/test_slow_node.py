"""The node that is slower than the others, by runs on pairs of nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_logs import beside, change, outcomes, pair, ring, said
from nccl_logs import GIB, Log
from project import ROOT
from script_modules import script_module

from ultracluster.acceptance.lines import Process
from ultracluster.acceptance.runs import Figures, Rank, Row, Run
from ultracluster.acceptance.slow_node import Comparison, compare
from ultracluster.cli.json_rows import plain

PLANNER = script_module(ROOT / "lifecycle_scripts" / "acceptance", "next_pairs")
FASTEST = 365.0


def names(count: int) -> list[str]:
    return [f"ip-10-1-0-{21 + index}" for index in range(count)]


def run(one: str, other: str, busbw: float) -> Run:
    half = Figures(1, busbw, busbw, 0)
    ranks = [Rank(index, 0, Process(node, 1), 0, "") for index, node in enumerate((one, other))]
    return Run("log", ranks=ranks, rows=[Row(4 * GIB, GIB, "float", "sum", -1, half, half)])


class Fabric:
    """Nodes of which each has a speed; a pair is as fast as its slower node, give or take a hundredth."""

    def __init__(self, count: int, slow: Mapping[int, float], seed: int = 1) -> None:
        self.nodes = names(count)
        self.speeds = {node: slow.get(index, 1.0) for index, node in enumerate(self.nodes)}
        self.slow = sorted(self.nodes[index] for index in slow)
        self._random = random.Random(seed)  # noqa: S311
        self.runs: list[Run] = []
        self.rounds = 0

    def measure(self, one: str, other: str) -> None:
        noise = self._random.uniform(0.99, 1.01)
        self.runs.append(run(one, other, FASTEST * min(self.speeds[one], self.speeds[other]) * noise))

    def ring(self) -> Fabric:
        for index, node in enumerate(self.nodes):
            self.measure(node, self.nodes[(index + 1) % len(self.nodes)])
        return self

    def job(self) -> Fabric:
        """Return what the job measures: neighbours, then as many rounds as the planner asks for."""
        self.ring()
        while pairs := PLANNER.next_pairs(self.nodes, self.figures):
            assert len({node for both in pairs for node in both}) == 2 * len(pairs)
            for one, other in pairs:
                self.measure(one, other)
            self.rounds += 1
        return self

    @property
    def figures(self) -> dict[frozenset[str], float]:
        return {frozenset(one.nodes): one.rows[0].out_of_place.busbw for one in self.runs}  # pyright: ignore[reportOptionalMemberAccess]

    def compare(self, places: Mapping[str, Sequence[str]] | None = None) -> Comparison:
        return compare(self.runs, nodes=self.nodes, places=places)


@st.composite
def fabrics(draw: Callable[..., float], least: float, most: float) -> Fabric:
    """Clusters of which less than half are slow, by the shares given."""
    count = int(draw(st.integers(3, 64)))
    slow = draw(st.dictionaries(st.integers(0, count - 1), st.floats(least, most), max_size=(count - 1) // 2))  # type: ignore[var-annotated]
    return Fabric(count, slow, int(draw(st.integers(0, 9))))  # pyright: ignore[reportArgumentType]


def one_switch(fabric: Fabric) -> dict[str, Sequence[str]]:
    return dict.fromkeys(fabric.nodes, ("spine", "leaf"))


@pytest.mark.parametrize(
    ("least", "most", "known", "failed"),
    [
        (0.3, 0.78, False, True),
        (0.82, 0.88, False, False),
        (0.3, 0.83, True, True),
        (0.87, 0.93, True, False),
    ],
)
def test_exactly_the_slow_nodes_are_named(least: float, most: float, known: bool, failed: bool) -> None:
    @settings(max_examples=40, deadline=None)
    @given(fabrics(least, most))
    def held(fabric: Fabric) -> None:
        said = fabric.job().compare(one_switch(fabric) if known else None)
        assert list(said.slow_nodes) == fabric.slow
        assert not said.not_judged and not said.slow_paths
        assert {suspect.failed for suspect in said.slow} <= {failed}
        assert fabric.rounds <= 16

    held()


@settings(max_examples=100, deadline=None)
@given(fabrics(0.3, 0.85), st.randoms(use_true_random=False))
def test_with_fewer_pairs_a_good_node_is_not_named_and_a_slow_one_never_passes(
    fabric: Fabric, chance: random.Random
) -> None:
    """A job that ended early, or logs that were lost."""
    fabric.ring()
    fabric.runs = chance.sample(fabric.runs, chance.randint(0, len(fabric.runs)))
    said = fabric.compare()
    assert set(said.slow_nodes) <= set(fabric.slow)
    if fabric.slow and any(not set(one.nodes) & set(fabric.slow) for one in fabric.runs):
        assert said.slow or said.slow_paths or said.not_judged


def test_alternating_slow_nodes_are_told_from_their_good_neighbours() -> None:
    """31 of 64, so that 62 of 64 pairs are slow: the median of the pairs is that of the slow ones."""
    fabric = Fabric(64, dict.fromkeys(range(0, 62, 2), 0.5)).job()

    assert list(fabric.compare().slow_nodes) == fabric.slow
    assert fabric.rounds <= 12
    assert Fabric(64, dict.fromkeys(range(0, 62, 2), 0.5)).ring().compare().not_judged


@pytest.mark.parametrize("count", [3, 4, 5, 8, 33, 64])
def test_a_healthy_cluster_needs_no_further_pair(count: int) -> None:
    fabric = Fabric(count, {}).job()

    assert fabric.rounds == 0
    said = fabric.compare()
    assert not said.slow and not said.slow_paths and not said.not_judged


@pytest.mark.parametrize("share", [0.74, 0.5])
def test_the_slow_node_of_four_is_named(share: float) -> None:
    """Two of the four pairs have it, so that the median of all pairs is lower than the good nodes reach."""
    (suspect,) = Fabric(4, {2: share}).job().compare().slow

    assert suspect.nodes == ("ip-10-1-0-23",) and suspect.failed
    assert suspect.others == pytest.approx(FASTEST, rel=0.02)


def test_half_of_the_nodes_are_no_majority() -> None:
    said = Fabric(4, {0: 0.6, 1: 0.6}).job().compare()

    assert not said.slow_nodes
    assert "half of the 4 nodes are slower" in said.not_judged[""]


def test_most_nodes_slow_are_not_judged() -> None:
    said = Fabric(7, dict.fromkeys(range(5), 0.6)).job().compare()

    assert not said.slow_nodes and "most may be slow" in said.not_judged[""]


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_nodes_cannot_be_compared(count: int) -> None:
    runs = [run("ip-10-1-0-21", "ip-10-1-0-22", 300.0)] if count == 2 else []
    said = compare(runs, nodes=names(count))

    assert "too few to decide" in said.not_judged[""]


def test_distance_is_no_fault() -> None:
    """Two leaves of eight nodes; between them a pair reaches 7 % less."""
    fabric = Fabric(16, {3: 0.92})
    places = {node: ("spine", f"leaf-{index // 8}") for index, node in enumerate(fabric.nodes)}
    for index, node in enumerate(fabric.nodes):
        other = fabric.nodes[(index + 1) % 16]
        far = 1.0 if places[node] == places[other] else 0.93
        busbw = FASTEST * far * min(fabric.speeds[node], fabric.speeds[other])
        fabric.runs.append(run(node, other, busbw))

    said = fabric.compare(places)
    assert said.slow_nodes == ("ip-10-1-0-24",) and not said.slow[0].failed
    assert not said.slow_paths and not said.not_judged
    assert {one.distance for one in said.pairs} == {0, 1}
    assert not fabric.compare().slow, "10 % are asked for where distances are not known"


def test_a_node_that_is_far_from_all_is_judged_with_the_wide_limits() -> None:
    fabric = Fabric(6, {})
    places = {
        node: ("spine", "leaf-1" if index == 5 else "leaf-0") for index, node in enumerate(fabric.nodes)
    }
    for index, node in enumerate(fabric.nodes):
        far = 0.92 if index in (4, 5) else 1.0
        fabric.runs.append(run(node, fabric.nodes[(index + 1) % 6], FASTEST * far))

    assert not fabric.compare(places).slow
    assert not fabric.compare(places).not_judged


def test_both_directions_and_repeated_runs_are_one_pair() -> None:
    one, two, three = names(3)
    runs = [
        run(one, two, 360), run(two, one, 364), run(two, three, 362), run(three, one, 362), run(one, two, 362)
    ]  # fmt: skip
    said = compare(runs, nodes=names(3))

    assert len(said.pairs) == 3
    assert next(pair.busbw for pair in said.pairs if pair.nodes == (one, two)) == 362


def test_a_node_without_a_measured_pair_is_not_judged() -> None:
    fabric = Fabric(8, {}).ring()
    fabric.runs = [one for one in fabric.runs if "ip-10-1-0-24" not in one.nodes]

    assert fabric.compare().not_judged == {"ip-10-1-0-24": "no pair with it was measured"}


# The words of the verdict


def eight(slow: str, reached: float, *, fabric: float = 364.87) -> list[Log]:
    nodes = names(8)
    logs = [
        pair(one, other, reached if slow in (one, other) else FASTEST)
        for one, other in zip(nodes, [*nodes[1:], nodes[0]], strict=True)
    ]
    return [change(hosts=nodes, figures={4 * GIB: fabric}, mark="run=fabric"), *logs]


def test_a_slow_node_fails_although_the_whole_reaches_its_gate() -> None:
    report = said(*eight("ip-10-1-0-24", 180.0), nodes=8)

    assert report.verdict == "fail"
    assert report.reason == "slow: ip-10-1-0-24 180.00 GB/s, others 365.00 (51 % below)"
    assert "180.00  ip-10-1-0-23 + ip-10-1-0-24  slow: ip-10-1-0-24" in report.as_text()
    pairs = plain(report)["pairs"]
    assert pairs["slow"] == [
        {"nodes": ["ip-10-1-0-24"], "busbw": 180.0, "others_busbw": 365.0, "outcome": "fail"}
    ]
    assert pairs["limits"] == {"warn": 0.9, "fail": 0.8}


def test_where_distances_are_known_5_percent_warn_and_15_fail() -> None:
    places = "".join(f"# ultracluster-acceptance place={node} path=spine.leaf.{node}\n" for node in names(8))
    for reached, verdict, outcome in (
        (365 * 0.96, "pass", "pass"),
        (365 * 0.94, "pass", "warn"),
        (365 * 0.84, "fail", "fail"),
    ):
        report = said(*eight("ip-10-1-0-24", reached), places)
        assert (report.verdict, outcomes(report, "pairs")) == (verdict, [outcome]), report.as_text()
    assert outcomes(said(*eight("ip-10-1-0-24", 365 * 0.94)), "pairs") == ["pass"]


def test_equal_nodes_have_no_slow_one() -> None:
    report = said(*eight("none", 0))

    assert report.verdict == "pass"
    assert outcomes(report, "pairs") == ["pass"]


def test_a_slow_path_between_good_nodes_fails_and_names_both() -> None:
    logs = eight("none", 0)
    logs[3] = change(logs[3], figures={4 * GIB: 100.0})

    report = said(*logs)

    assert report.verdict == "fail"
    assert "slow between: ip-10-1-0-23 + ip-10-1-0-24 100.00 GB/s" in report.reason
    assert report.pairs and not report.pairs.slow_nodes


def test_without_pairs_no_verdict_passes() -> None:
    good = change()
    hosts = beside(good.text()).split("# composed")[0]

    report = said(good, hosts, bare=True)

    assert report.verdict == "not judged"
    assert report.reason == "0 measured pairs of 4 nodes: too few to decide which is slow"


def test_a_cut_log_of_a_pair_is_not_judged() -> None:
    logs = [log.text() for log in ring(names(4))]
    logs[1] = logs[1][: logs[1].index("#\n# ") + 200]

    assert said(change(mark="run=fabric"), *logs).verdict == "not judged"


def test_names_in_a_log_cannot_write_lines_of_the_verdict() -> None:
    text = change().text().replace("ip-10-1-0-22", "n\x1b[2Jx")
    forged = '# ultracluster-host {"host": "a", "verdict": "fail", "summary": "x\\nPASS: all checks"}\n'

    lines = said(text, forged, bare=True).as_text().splitlines()

    assert not any("\x1b" in line or line.startswith("PASS") for line in lines)
    assert lines[-1].startswith("FAIL: ")
