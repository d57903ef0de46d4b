"""Pause and resume as plans: what stops them, their order, and that no count is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from project import ROOT
from rules_support import environment_data, loaded

from ultracluster.account.pausing import Job, Pause, Plan, Seen, pause, resume, ways
from ultracluster.config import load
from ultracluster.model import Cluster, resolve

NOW = datetime(2026, 11, 28, 18, tzinfo=UTC)
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p5"
MARK = Pause(by="alice", at=NOW, counts={"gpu": 2})


def cluster(capacity: dict[str, Any] | None = None) -> Cluster:
    data = environment_data("dev")
    data["node_groups"]["gpu"]["capacity"] = capacity or {"kind": "on-demand"}
    return resolve(loaded(data).environment)


DEV = cluster()
SEEN = Seen(counts={"gpu": 2}, asked_by="alice")


def kinds(found: Plan) -> list[str]:
    return [step.kind for step in found.steps]


def test_nothing_is_scaled_before_its_count_is_kept_and_its_jobs_are_done() -> None:
    job = Job(id="42", user="bob", groups=("gpu",), checkpoint=NOW)
    found = pause(DEV, replace(SEEN, jobs=(job,)))
    assert not found.refusals and kinds(found) == ["mark", "drain", "wait", "scale"]
    assert found.mark == Pause(by="alice", at=None, counts={"gpu": 2})
    assert [(step.group, step.count) for step in found.steps if step.kind == "scale"] == [("gpu", 0)]
    assert "42 of bob" in found.steps[2].text
    assert "controller" not in {step.group for step in found.steps}, "the control plane and logins stay"


def test_without_jobs_nobody_waits() -> None:
    assert kinds(pause(DEV, SEEN)) == ["mark", "drain", "scale"]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(SEEN, at_work=("dev-cluster is UPDATE_IN_PROGRESS",)), "dev-cluster is UPDATE_IN_PROGRESS"),
        (replace(SEEN, paused=replace(MARK, by="bob")), "bob paused it at 2026-11-28 18:00 UTC"),
        (replace(SEEN, counts={"gpu": None}), "gpu: how many nodes it is asked for is not known"),
        (replace(SEEN, counts={}), "gpu: how many nodes it is asked for is not known"),
    ],
    ids=["deploy", "two people", "unreadable", "absent"],
)
def test_what_stops_a_pause(seen: Seen, said: str) -> None:
    found = pause(DEV, seen)
    assert any(said in one for one in found.refusals) and not found.steps and found.mark is None


def test_a_pause_that_was_cut_off_keeps_the_first_counts() -> None:
    """The service is asked for 0 by then, which is nothing to go back to."""
    found = pause(DEV, replace(SEEN, counts={"gpu": 0}, paused=MARK))
    assert not found.refusals and found.mark == MARK and "mark" not in kinds(found)


def test_a_group_more_is_added_to_the_record() -> None:
    found = pause(DEV, replace(SEEN, paused=replace(MARK, counts={"other": 1})))
    assert kinds(found)[0] == "mark" and found.mark == replace(MARK, counts={"other": 1, "gpu": 2})


@pytest.mark.parametrize("paid", [None, 12345.0])
def test_committed_capacity_is_refused_unless_it_is_named(paid: float | None) -> None:
    mine = cluster({"kind": "training-plan", "arn": PLAN})
    seen = replace(SEEN, paid={"gpu": paid} if paid else {})
    (refusal,) = pause(mine, seen).refusals
    assert (
        "training-plan" in refusal and ("12,345.00 USD" if paid else "what was paid is not known") in refusal
    )
    assert kinds(pause(mine, seen, named=["gpu"])) == ["mark", "drain", "scale"]


def test_a_group_that_there_is_not_is_refused() -> None:
    assert "there is no compute group `gpus`: gpu" in pause(DEV, SEEN, groups=["gpus"]).refusals[0]


@pytest.mark.parametrize(
    ("capacity", "said"),
    [({"kind": "on-demand"}, "EC2 keeps no capacity"), ({"kind": "spot"}, "EC2 keeps no capacity")],
)
def test_capacity_that_may_not_come_back_is_said(capacity: dict[str, Any], said: str) -> None:
    assert any("gpu" in one and said in one for one in pause(cluster(capacity), SEEN).warnings)


def test_a_fleet_stops_as_a_whole() -> None:
    mine = resolve(load(ROOT / "environments" / "parallelcluster-p5.yaml").environment)
    compute = list(mine.with_role("compute"))
    seen = replace(SEEN, counts=dict.fromkeys(compute, 1))
    named = [name for name in compute if mine.groups[name].capacity.kind not in ("on-demand", "spot")]
    found = pause(mine, seen, named=named)
    assert [step.group for step in found.steps if step.kind == "scale"] == [""]
    if len(compute) > 1:
        assert "as a whole" in pause(mine, seen, groups=compute[:1], named=named).refusals[0]


def test_resume_asks_for_what_there_was() -> None:
    found = resume(DEV, replace(SEEN, counts={"gpu": 0}, paused=replace(MARK, by="bob")))
    assert not found.refusals and kinds(found) == ["scale", "undrain", "unmark"]
    assert [(step.group, step.count) for step in found.steps if step.kind == "scale"] == [("gpu", 2)]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (SEEN, "is not paused"),
        (replace(SEEN, paused=MARK, at_work=("dev-cluster is UPDATE_IN_PROGRESS",)), "UPDATE_IN_PROGRESS"),
    ],
)
def test_what_stops_a_resume(seen: Seen, said: str) -> None:
    found = resume(DEV, seen)
    assert any(said in one for one in found.refusals) and not found.steps


def test_groups_that_changed_meanwhile_are_said() -> None:
    found = resume(DEV, replace(SEEN, paused=replace(MARK, counts={"gpu": 1, "gone": 3})))
    words = " ".join(found.warnings)
    assert (
        "gone: the file has no such group any more" in words
        and "gpu: 1 before the pause, 2 in the file" in words
    )
    assert [(step.group, step.count) for step in found.steps if step.kind == "scale"] == [("gpu", 1)]


def test_the_services_take_a_zero_where_the_table_says_so() -> None:
    session = botocore.session.get_session()
    for way in ways().values():
        if way.shape:
            service, shape, *members = way.shape.split(".")
            found = session.get_service_model(service).shape_for(shape).members
            assert all(found[member].metadata["min"] == 0 for member in members), way
