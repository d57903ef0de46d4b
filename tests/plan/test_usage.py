"""Use of nodes by user, team and job: the rows come to what all nodes cost in the time."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.model import Cluster, resolve
from ultracluster.plan.cost import estimate
from ultracluster.plan.usage import By, Records, Run, Usage, UsageRow, usage

DAY = dt.date(2026, 11, 21)
BEGIN = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
HOURS = 100
NODES = ("n1", "n2")
"""All of group `gpu` of `dev`: 2 × g6e.12xlarge, 4 GPUs each."""


def cluster(**changes: Any) -> Cluster:
    return resolve(loaded(changed(environment_data("dev"), changes)).environment)


def run(job: str, start: float, end: float | None, **more: Any) -> Run:
    """Hours after the beginning."""
    zero = BEGIN.timestamp()
    given = {"attempt": f"{job} {start}", "user": "alice", "team": "vision", "nodes": NODES} | more
    return Run(job=job, start=zero + start * 3600, end=None if end is None else zero + end * 3600, **given)


def report(*runs: Run, by: By = "user", now: float = HOURS, known: Cluster | None = None) -> Usage:
    known = known or cluster()
    groups = {node: "gpu" for one in runs for node in one.nodes if node.startswith("n")}
    records = Records(place="here", now=BEGIN.timestamp() + now * 3600, runs=runs, groups=groups)
    until = BEGIN + dt.timedelta(hours=HOURS)
    return usage(known, estimate(known, today=DAY), records, BEGIN, until, by)


def row(found: Usage, name: str) -> UsageRow:
    return next(one for one in found.rows if one.name == name or one.kind == name)


def used(found: Usage) -> list[UsageRow]:
    return [one for one in found.rows if one.kind == "use"]


HALF = {"share": 0.5, "accelerators": 0.5}
CASES: dict[str, tuple[list[Run], dict[str, float]]] = {
    "whole nodes": ([run("1", 10, 20)], {"alice": 20}),
    "begins before": ([run("1", -50, 10)], {"alice": 20}),
    "ends behind": ([run("1", 90, 150)], {"alice": 20}),
    "longer than the time": ([run("1", -50, 150)], {"alice": 200}),
    "is over before": ([run("1", -50, -1)], {}),
    "runs": ([run("1", 95, None)], {"alice": 10}),
    "each start counts": ([run("1", 0, 5), run("1", 10, 15)], {"alice": 20}),
    "half of a node": ([run("1", 0, 10, **HALF)], {"alice": 10}),
    "two share": ([run("1", 0, 10, **HALF), run("2", 0, 10, user="bob", **HALF)], {"alice": 10, "bob": 10}),
    "more than there is": ([run("1", 0, 10), run("2", 5, 10, user="bob")], {"alice": 15, "bob": 5}),
    "a third each": (
        [run(str(number), 0, 9, user=f"u{number}") for number in range(3)],
        {"u0": 6, "u1": 6, "u2": 6},
    ),
    "unknown user": ([run("1", 0, 10, user="")], {"": 20}),
    "clocks that differ": ([run("1", 10, 9), run("2", 99.5, 130)], {"alice": 1}),
    "the same node twice": ([run("1", 0, 10, nodes=("n1", "n1"))], {"alice": 10}),
}


@pytest.mark.parametrize("name", CASES)
def test_hours_and_the_whole(name: str) -> None:
    runs, hours = CASES[name]
    found = report(*runs)

    assert {one.name: pytest.approx(one.node_hours) for one in used(found)} == hours
    whole, price = report().total, estimate(cluster(), today=DAY)
    assert found.total.node_hours == pytest.approx(whole.node_hours) == HOURS * 4
    instances = sum(line.per_hour or 0 for line in price.lines if line.item.group)
    assert found.total.usd == pytest.approx(whole.usd) == pytest.approx(instances * HOURS)
    assert row(found, "idle").node_hours == pytest.approx(HOURS * 2 - sum(hours.values()))
    assert found.total.accelerator_hours == pytest.approx(HOURS * 2 * 4)
    for attribute in ("node_hours", "accelerator_hours", "usd"):
        parts = sum(getattr(one, attribute) for one in found.rows)
        assert parts == pytest.approx(getattr(found.total, attribute)), attribute


def test_a_user_pays_by_the_hour_of_the_node_and_the_dearest_is_first() -> None:
    found = report(run("1", 0, 10, nodes=("n1",)), run("2", 10, 40, user="bob", nodes=("n1",)))
    gpu = next(line for line in estimate(cluster(), today=DAY).lines if line.item.group == "gpu")
    assert gpu.figure
    assert [(one.name, one.usd) for one in used(found)] == [
        ("bob", pytest.approx(30 * gpu.figure.per_hour)),
        ("alice", pytest.approx(10 * gpu.figure.per_hour)),
    ]


def test_a_job_is_all_of_its_starts_and_tasks() -> None:
    runs = [run("7", 0, 1, attempt=f"7_{task}", nodes=("n1",), **HALF) for task in range(4)]
    found = report(*runs, run("8", 1, 2, name="train"), run("8", 3, 4, name="train"), by="job")
    rows = {one.name: (one.jobs, one.starts, one.user, one.team, one.job_name) for one in used(found)}
    assert rows == {"7": (1, 4, "alice", "vision", ""), "8": (1, 2, "alice", "vision", "train")}
    assert [one.name for one in used(report(*runs, by="team"))] == ["vision"]
    assert report(*runs).total.jobs == 1


def test_accelerators_are_those_of_the_job() -> None:
    cpu_only = run("1", 0, 10, share=0.5, accelerators=0.0, nodes=("n1",))
    two = run("2", 0, 10, share=0.5, accelerators=0.5, user="bob", nodes=("n1",))
    found = report(cpu_only, two)
    assert {one.name: one.accelerator_hours for one in used(found)} == {"alice": 0, "bob": 20}
    assert row(found, "idle").accelerator_hours == HOURS * 8 - 20


def test_nodes_beyond_the_file_cost_while_jobs_hold_them() -> None:
    found = report(run("1", 0, 10, nodes=("n1", "n2", "n3")), run("2", 5, 10, nodes=("n4",), user="bob"))
    assert found.total.node_hours == pytest.approx(HOURS * 4 + 10 + 5)
    assert row(found, "idle").node_hours == pytest.approx(HOURS * 2 - 20)
    elastic = cluster(**{"node_groups.gpu.max_count": 8, "node_groups.gpu.count": 2})
    assert any("beyond the count" in note for note in report(known=elastic).notes)


def test_what_has_no_price_is_said_and_is_not_nothing() -> None:
    found = report(run("1", 0, 10, nodes=("elsewhere",)))
    (alice,) = used(found)
    assert (alice.usd, alice.not_priced_node_hours) == (None, 10)
    assert any("10.0 node-hours are of nodes that belong to no group" in note for note in found.notes)
    assert found.total.usd == pytest.approx(report().total.usd)


def test_the_time_ends_when_the_scheduler_was_asked() -> None:
    found = report(run("1", 0, None), now=50)
    assert (found.hours, found.until) == (50, BEGIN + dt.timedelta(hours=50))
    assert used(found)[0].node_hours == 100 and row(found, "idle").node_hours == 0
    assert report(now=-5).total.node_hours == 0


def test_a_thousand_jobs_by_chance() -> None:
    chance = random.Random(34)  # noqa: S311 - no secret
    runs = [
        run(str(number), begin := chance.uniform(-20, 110), begin + chance.uniform(0, 30),
            user=f"u{number % 7}", nodes=tuple(chance.sample(NODES, chance.choice((1, 2)))),
            share=(part := chance.random()), accelerators=part)
        for number in range(1000)
    ]  # fmt: skip
    found = report(*runs, by="job")
    assert found.total.node_hours == pytest.approx(HOURS * 4)
    assert all(one.node_hours >= 0 for one in found.rows)
    assert row(found, "idle").accelerator_hours >= 0
