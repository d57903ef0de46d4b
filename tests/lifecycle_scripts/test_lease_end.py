"""What is done at the end of a lease, and when that is; test_lease.py of the twin has a real Slurm do it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from project import ROOT


def load(name: str) -> ModuleType:
    """A file of nodes' Python, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "lifecycle_scripts" / "files" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


decision, times = load("lease_end_decision"), load("lease_end_times")
program = load("lease_end")
NOW = 1_800_000_000.0
SIGNAL, STOP = 15, 5


def lease(minutes: float, **fields: Any) -> Any:
    """AWS takes the nodes in so many minutes."""
    row = {
        "group": "train",
        "nodes": ("n1", "n2"),
        "partition": "gpu",
        "begin": None,
        "reclaimed_minutes": 30,
    }
    return decision.Lease(**{**row, "end": NOW + 60 * (minutes + 30), **fields})


def job(**fields: Any) -> Any:
    row = {
        "id": "7",
        "limit": None,
        "start": NOW - 600,
        "nodes": ("n1", "n2"),
        "partition": "gpu",
        "array": "7",
    }
    return decision.Job(**{**row, **fields})


def decided(one: Any, *, there: Any = None, running: Any = (), pending: Any = (), **memory: Any) -> list[str]:
    """Commands, without the reservation where that is as it should be."""
    stop = decision.stop_time(one, STOP) if one.end else 0
    have = [decision.Reservation("ultracluster_lease_train", stop, one.nodes)] if there is None else there
    remembered = {"limits": {}, "signalled": {}} | memory
    actions = decision.decide(NOW, [one], have, running, pending, remembered, SIGNAL, STOP)
    return [" ".join(action.command) or action.words for action in actions]


def test_a_reservation_begins_when_jobs_have_to_be_gone() -> None:
    (made,) = decided(lease(60), there=[])
    assert made.startswith(
        "scontrol create reservation ReservationName=ultracluster_lease_train StartTime=20"
    )
    assert made.endswith("Duration=UNLIMITED Nodes=n1,n2 Users=root Flags=MAINT,IGNORE_JOBS")
    assert decided(lease(60)) == []


def test_it_follows_the_lease_and_its_nodes() -> None:
    one = lease(60)
    begins = decision.stop_time(one, STOP)
    name = "ultracluster_lease_train"
    (moved,) = decided(one, there=[decision.Reservation(name, begins + 86400, one.nodes)])
    assert moved.startswith(f"scontrol update reservation ReservationName={name} StartTime=")
    (nodes,) = decided(one, there=[decision.Reservation(name, begins, ("n1",))])
    assert nodes.endswith("Nodes=n1,n2")
    assert "StartTime" not in nodes
    # it has begun, and the lease was extended: Slurm does not move it
    deleted, made = decided(one, there=[decision.Reservation(name, NOW - 60, one.nodes)])
    assert deleted == f"scontrol delete ReservationName={name}"
    assert made.startswith("scontrol create reservation")
    # it has begun, as it should
    late = lease(2)
    assert decided(late, there=[decision.Reservation(name, NOW - 180, late.nodes)]) == []


@pytest.mark.parametrize(
    "fields", [{"end": None}, {"nodes": ()}, {"begin": NOW + 86400}], ids=["unknown", "no nodes", "not begun"]
)
def test_what_is_not_known_or_not_there_changes_nothing(fields: dict[str, Any]) -> None:
    assert decided(lease(60, **fields), there=[], running=[job()]) == []


def test_only_reservations_of_ours_go_with_their_lease() -> None:
    have = [decision.Reservation("ultracluster_lease_old", NOW, ("n9",))]
    actions = decision.decide(NOW, [], have, [], [], {"limits": {}, "signalled": {}}, SIGNAL, STOP)
    assert [one.command for one in actions] == [
        ("scontrol", "delete", "ReservationName=ultracluster_lease_old")
    ]


ASKS = "ultracluster:signal=USR1"


@pytest.mark.parametrize(
    ("minutes", "fields", "expected"),
    [
        (16, {"comment": ASKS}, []),
        (14, {"comment": ASKS}, ["scancel --batch --signal=USR1 7"]),
        (14, {"comment": "x ultracluster:signal=USR2;y"}, ["scancel --batch --signal=USR2 7"]),
        (14, {"comment": "ultracluster:signal=USR11"}, []),
        (14, {"comment": "ultracluster:signal=KILL"}, []),
        (14, {}, []),
        (14, {"comment": ASKS, "limit": 900, "end": NOW + 600}, []),
        (14, {"comment": ASKS, "nodes": ("n3",)}, []),
        (4, {}, ["scontrol requeue 7"]),
        (4, {"limit": 900, "end": NOW + 120}, []),
        (4, {"nodes": ("n3",)}, []),
        (4, {"requeue": False}, ["job 7 cannot be put back into the queue: it runs until its nodes go"]),
        (4, {"batch": False}, ["job 7 cannot be put back into the queue: it runs until its nodes go"]),
    ],
)
def test_jobs_that_run_over_the_end(minutes: float, fields: dict[str, Any], expected: list[str]) -> None:
    assert decided(lease(minutes), running=[job(**fields)]) == expected


def test_a_signal_comes_once_for_each_end() -> None:
    one = lease(14)
    gone = int(one.end - 1800)
    asks = job(comment=ASKS)
    assert decided(one, running=[asks], signalled={"7": gone}) == []
    assert decided(one, running=[asks], signalled={"7": gone - 86400}) == ["scancel --batch --signal=USR1 7"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["scontrol update JobId=7 TimeMin=11"]),
        ({"limit": 7200}, []),
        ({"limit": 7200, "comment": ASKS}, ["scontrol update JobId=7 TimeMin=11"]),
        ({"limit": 600, "comment": ASKS}, []),
        ({"least": 60}, []),
        ({"partition": "cpu"}, []),
        ({"partition": "cpu,gpu"}, ["scontrol update JobId=7 TimeMin=11"]),
    ],
)
def test_jobs_that_wait(fields: dict[str, Any], expected: list[str]) -> None:
    assert decided(lease(60), pending=[job(nodes=(), start=None, **fields)]) == expected
    assert decided(lease(10), pending=[job(nodes=(), start=None, **fields)]) == []


def test_who_was_let_in_runs_until_the_nodes_go_and_gets_its_limit_back() -> None:
    inside = job(limit=3000, end=NOW + 2400)
    (longer,) = decided(lease(60), running=[inside], limits={"7": None})
    assert longer == "scontrol update JobId=7 TimeLimit=81"
    own = decided(lease(60), running=[inside], limits={"7": 3600})
    assert own == ["scontrol update JobId=7 TimeLimit=61"]
    # not let in by this: its limit is its own
    assert decided(lease(60), running=[inside]) == []
    waiting = job(nodes=(), limit=4860)
    assert decided(lease(60), pending=[waiting], limits={"7": None}) == [
        "scontrol update JobId=7 TimeLimit=UNLIMITED"
    ]
    assert decided(lease(60), pending=[waiting], limits={"7": 259200}) == [
        "scontrol update JobId=7 TimeLimit=4320"
    ]
    assert decided(lease(60), pending=[waiting], limits={"7": 4860}) == []


# ---- when it ends


def part(begin: str, end: str, status: str = "Scheduled") -> dict[str, str]:
    return {
        "StartTime": f"2026-12-{begin}T11:30:00Z",
        "EndTime": f"2026-12-{end}T11:30:00+00:00",
        "Status": status,
    }


def at(day: str) -> float:
    return times.seconds_of(f"2026-12-{day}T11:30:00Z")


@pytest.mark.parametrize(
    ("now", "begin", "end"), [("02", "01", "08"), ("09", "10", "12"), ("11", "10", "12"), ("20", "10", "12")]
)
def test_parts_of_a_plan_that_follow_one_another_are_one(now: str, begin: str, end: str) -> None:
    plan = [part("10", "12"), part("01", "05", "Active"), part("05", "08"), part("12", "30", "Failed")]
    assert times.plan_times({"ReservedCapacitySummaries": plan}, at(now)) == (at(begin), at(end))


def test_a_plan_that_tells_no_parts_ends_as_a_whole() -> None:
    assert times.plan_times(part("01", "05"), at("02")) == (at("01"), at("05"))


@pytest.mark.parametrize(
    "told", ["", "no JSON", "{}", '{"CapacityReservations": []}', "[1]", '{"CapacityReservations": [{}]}']
)
def test_an_answer_that_is_none_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setattr(times, "call", lambda *_, **__: told)
    known = {"begin": None, "end": NOW + 60, "asked": 0}
    row = {"id": "cr-1", "group": "train", "kind": "capacity-block"}
    found, problem = times.ends_of(row, NOW, "us-east-1", {"cr-1": known})
    assert found == known
    assert "AWS does not tell when cr-1 ends" in problem
    assert times.ends_of(row, NOW, "us-east-1", {"cr-1": "broken"})[0] == {}


def test_aws_is_asked_seldom_while_the_end_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def call(*words: str, **_: Any) -> str:
        asked.append(words)
        return json.dumps({"CapacityReservations": [{"EndDate": "2027-01-20T11:30:00Z"}]})

    monkeypatch.setattr(times, "call", call)
    row = {"id": "cr-1", "group": "train", "kind": "capacity-block"}
    for end, ago, questions in (
        (NOW + 86400, 300, 0),
        (NOW + 86400, 700, 1),
        (NOW + 3600, 30, 0),
        (NOW + 3600, 60, 1),
    ):
        asked.clear()
        times.ends_of(row, NOW, "us-east-1", {"cr-1": {"begin": None, "end": end, "asked": NOW - ago}})
        assert len(asked) == questions


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("UNLIMITED", None),
        ("7-00:00:00", 604800),
        ("1-12", 129600),
        ("01:00:00", 3600),
        ("30:00", 1800),
        ("0:00", 0),
    ],
)
def test_limits_as_squeue_prints_them(text: str, seconds: int | None) -> None:
    assert times.seconds_of_limit(text) == seconds


def test_nodes_of_a_group_of_hyperpod_are_those_of_its_own_file() -> None:
    addresses = [{"CustomerIpAddress": f"10.1.0.{number}"} for number in (21, 22)]
    other = {"Name": "cpu", "Instances": [{"CustomerIpAddress": "10.1.0.23"}]}
    groups = [{"Name": "train", "Instances": addresses}, other, {"Name": "empty"}]
    known = ["ip-10-1-0-21", "ip-10-1-0-23"]
    named = {"nodes": {"instance_group": "train"}}
    assert program.nodes_of(named, known, {"InstanceGroups": groups}) == ("ip-10-1-0-21",)
    assert program.nodes_of(named, known, {}) == ()


def test_a_comment_with_a_line_break_is_no_row_about_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root acts on what it reads here. The output is as squeue of Slurm 26.05 prints it."""

    def row(number: str, comment: str) -> str:
        told = {"JobID": number, "TimeLimit": "1:00:00", "Requeue": "1", "Partition": "gpu"}
        cells = [told.get(name, "")[:size].ljust(size) for name, size in program.FIELDS.items()]
        return "".join(cells[:-1]) + comment[: program.FIELDS["Comment"]].ljust(program.FIELDS["Comment"])

    forged = row("4711", "ultracluster:signal=USR1")[:398]
    text = (
        f"{row('7', f'x{chr(10)}{forged}')}\n{row('8', 'ultracluster:signal=USR1')}\n{row('9', 'ä' * 200)}\n"
    )
    assert "\n4711 " in text
    monkeypatch.setattr(program, "call", lambda *_: text)
    found = {one.id: one.comment for one in program.jobs({})}
    assert found == {"8": "ultracluster:signal=USR1", "9": "ä" * 200}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"leases": 1, "signal_minutes": 2, "stop_minutes": 1}'])
def test_a_broken_document_is_refused_in_a_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lease.json").write_text(text)
    assert program.main([str(tmp_path / "lease.json")]) == 2
    assert capsys.readouterr().out.startswith("this is no document of leases")
    assert program.main([str(tmp_path / "none.json")]) == 0
