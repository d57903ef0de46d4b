"""A storm of faults: no more nodes are out of work than may be, and nothing is forgotten."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from depth import examples
from health_findings import NEW, NOW, OLD, known, line, open_faults, refused
from health_modules import health_module
from hypothesis import example, given, settings
from hypothesis import strategies as st

decide = health_module("decide")
jobs = health_module("jobs")


class Cluster:
    """Nodes as slurmctld has them, each with its book; the lock is held for each step."""

    def __init__(self, count: int, rules: Any) -> None:
        self.rules, self.now = rules, NOW
        self.nodes = {f"n{number}": known.Node(f"n{number}", frozenset({"IDLE"})) for number in range(count)}
        self.books = {name: open_faults.Book(OLD) for name in self.nodes}

    def step(self, name: str, found: tuple[Any, ...] = ()) -> None:
        """One round of a node's service."""
        self.books[name] = open_faults.noted(self.books[name], found, now=self.now)
        for finding in open_faults.due(self.books[name], now=self.now, all_open=True)[:1]:
            me = self.nodes[name]
            plan = decide.answer(finding, me, self._all(), self.rules, boot=OLD, now=self.now)
            self._do(me, plan)
            taken = any(word == "drain" for word, _ in plan.steps)
            answer = "waiting" if plan.refused and taken else plan.refused or plan.steps[-1][0]
            self.books[name] = refused(self.books[name], finding, answer, self.now)
        self._do(self.nodes[name], decide.promote(self.nodes[name], self._all(), self.rules, self.now))

    def _all(self) -> list[Any]:
        return list(self.nodes.values())

    def _do(self, me: Any, plan: Any) -> None:
        for word, text in plan.steps:
            if word == "drain":
                me = replace(me, states=frozenset({"IDLE", "DRAIN"}), reason=text, reason_at=self.now)
            elif word == "last":
                me = replace(me, weight=known.LAST_WEIGHT)
        self.nodes[me.name] = replace(me, comment=plan.memory.text) if plan.memory else me

    def mend(self, name: str) -> None:
        """It has been rebooted, and is back."""
        memory = known.memory_of(self.nodes[name].comment)
        if self.nodes[name].held_by_us and not memory.waiting:
            comment = replace(memory, action="", event=False, waiting=False).text
            self.nodes[name] = known.Node(name, frozenset({"IDLE"}), comment=comment)
            self.books[name] = open_faults.Book(NEW)

    def out(self) -> int:
        return sum(map(decide.is_out, self.nodes.values()))

    def at_work_with_a_fault(self) -> list[str]:
        return [
            name
            for name, kept in self.books.items()
            if any(row.finding.fatal for row in kept.rows.values()) and not decide.is_out(self.nodes[name])
        ]


def test_a_storm_of_200_of_1000_nodes() -> None:
    """Share 100, closed up to 250: all 200 are closed to new jobs. With a closed limit of 12 % the others
    work on, and each of them is still open."""
    chosen = random.Random(7)  # noqa: S311
    for closed, expected in ((25, 200), (12, 120)):
        cluster = Cluster(1000, known.Policy(mode="enforce", orchestrator="pcs", max_closed_percent=closed))
        broken = chosen.sample(sorted(cluster.nodes), 200)
        for name in broken:
            cluster.step(name, (line(),))
        assert cluster.out() == expected
        working = cluster.at_work_with_a_fault()
        assert len(working) == 200 - expected
        assert all(cluster.books[name].of(line()).open for name in working)
        assert all(cluster.nodes[name].weight == known.LAST_WEIGHT for name in working)
        drained = [name for name in broken if known.memory_of(cluster.nodes[name].comment).drained]
        assert len(drained) == 100


@given(
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(1, 60),
    st.integers(0, 5),
    st.lists(
        st.tuples(st.sampled_from(["break", "idle", "again", "mend", "hour"]), st.integers(0, 39)),
        max_size=60,
    ),
)
@example(15, 20, 1, 0, [("idle", 0), ("idle", 3), ("idle", 5), ("break", 1), ("break", 2), ("break", 4)])
@settings(max_examples=examples(60), deadline=None)
def test_never_more_are_out_than_share_and_second_limit_and_no_fault_is_forgotten(
    count: int, percent: int, closed: int, hourly: int, story: list[tuple[str, int]]
) -> None:
    rules = known.Policy(
        mode="enforce",
        orchestrator="pcs",
        max_drained_percent=percent,
        max_closed_percent=closed,
        max_drained_per_hour=hourly,
    )
    cluster = Cluster(count, rules)
    share = max(1, count * percent // 100)
    limit = max(2, share, count * closed // 100)  # the share included: see closed_limit
    for word, number in story:
        name = f"n{number % count}"
        cluster.now += 20
        if word == "break":
            cluster.step(name, (line(at=cluster.now),))
        elif word == "idle":
            cluster.step(name, (line("63", result="warn", action="none", when_idle="reset", fatal=False),))
        elif word == "again":
            cluster.step(name)
        elif word == "mend":
            cluster.mend(name)
        else:
            cluster.now += 3600
        assert cluster.out() <= share + limit
        for one in cluster.at_work_with_a_fault():
            assert any(row.open for row in cluster.books[one].rows.values())
    # in the end each is answered: nodes come back, hours pass
    for _ in range(2 * count):
        cluster.now += 3601
        for name in cluster.nodes:
            cluster.step(name)
        for name in cluster.nodes:
            cluster.mend(name)
    assert cluster.out() == 0
    assert not any(kept.rows for kept in cluster.books.values())
