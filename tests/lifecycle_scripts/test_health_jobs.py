"""Whose job has met a fault, and what becomes of that job and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from health_findings import NOW, contained, look
from health_modules import health_module

place, jobs = health_module("place"), health_module("jobs")


QUEUE = [("7", NOW - 600, "2001")]


@pytest.mark.parametrize(
    ("queue", "process", "found"),
    [
        (QUEUE, "", ("7", "2001")),
        ([("8", NOW + 60, "2002")], "", ("", "")),  # it has begun since
        ([*QUEUE, ("8", NOW + 60, "2002")], "", ("7", "2001")),
        ([*QUEUE, ("8", NOW - 60, "2002")], "", ("", "")),  # which of two cannot be said
        ([*QUEUE, ("8", NOW - 60, "2002")], "8", ("8", "2002")),
        ([*QUEUE, ("8", NOW + 60, "2002")], "8", ("", "")),  # its process has the number of an earlier one
        (QUEUE, "9", ("", "")),
        ([], "", ("", "")),
    ],
)
def test_the_job_is_that_of_the_lines_time_and_process(queue: Any, process: str, found: Any) -> None:
    assert jobs.met(queue, NOW, process) == found


@pytest.mark.parametrize(
    ("detail", "cgroup", "job"),
    [
        ("94, pid=1896, name=python", "0::/system.slice/slurmstepd.scope/job_42/step_0", "42"),
        ("94, pid='1896', name=python", "6:freezer:/slurm_n1/uid_2001/job_7/step_batch", "7"),
        ("94, pid='<unknown>', name=<unknown>", "0::/job_42/x", ""),
        ("94, pid=1896, name=python", "0::/user.slice/not_job_4x", ""),
    ],
)
def test_the_process_of_a_line_tells_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detail: str, cgroup: str, job: str
) -> None:
    monkeypatch.setattr(place, "ROOT", tmp_path)
    (tmp_path / "proc/1896").mkdir(parents=True)
    (tmp_path / "proc/1896/cgroup").write_text(f"{cgroup}\n")
    assert jobs.of_process(contained(detail=detail)) == job
    assert jobs.of_process(look(detail=detail)) == ""


class Queue:
    """A Slurm with one node's jobs, and what was done to them."""

    def __init__(self, *there: str, note: str = "", start: float = NOW - 60) -> None:
        self.there, self.note, self.start = there, note, start
        self.done: list[str] = []

    def queue(self, _: str) -> list[tuple[str, float, str]]:
        return [(job, self.start, "2001") for job in self.there]

    def job_note(self, _: str) -> str:
        return self.note

    def run(self, *words: str) -> None:
        self.done.append(" ".join(words[1:]))


@pytest.mark.parametrize(
    ("slurm", "done"),
    [
        (Queue("7"), ["update JobId=7 AdminComment=ultracluster:requeued:xid:94", "requeue 7"]),
        (
            Queue("7", note="vip"),
            ["update JobId=7 AdminComment=vip ultracluster:requeued:xid:94", "requeue 7"],
        ),
        (
            Queue("7", note="ultracluster:requeued:xid:94"),
            [
                "update JobId=7 AdminComment=ultracluster:requeued:xid:94 ultracluster:held:xid:94",
                "requeuehold 7",
            ],
        ),
        (Queue("8"), []),
        (Queue("7", start=NOW + 60), []),  # it has been queued again since
        (Queue(), []),
    ],
)
def test_a_job_is_queued_again_once_for_one_cause_and_then_held(slurm: Queue, done: list[str]) -> None:
    jobs.requeue_once(slurm, "n1", contained(), "7")
    assert slurm.done == done


def test_a_note_that_is_refused_keeps_no_job_from_the_queue() -> None:
    slurm = Queue("7")

    def run(*words: str) -> None:
        if words[1] == "update":
            raise jobs.SlurmError("no permission")
        slurm.done.append(" ".join(words[1:]))

    slurm.run = run
    assert jobs.requeue_once(slurm, "n1", contained(), "7")
    assert slurm.done == ["requeue 7"]


@pytest.mark.parametrize(
    ("error", "again"), [("scontrol: timed out", True), ("Requested operation is presently disabled", False)]
)
def test_a_slurmctld_that_is_away_is_asked_again_and_holds_no_job(error: str, again: bool) -> None:
    slurm = Queue("7", note="vip")

    def run(*words: str) -> None:
        if words[1] == "requeue":
            raise jobs.SlurmError(error)
        slurm.done.append(" ".join(words[1:]))

    slurm.run = run
    if again:
        with pytest.raises(jobs.SlurmError):
            jobs.requeue_once(slurm, "n1", contained(), "7")
        assert slurm.done[-1] == "update JobId=7 AdminComment=vip", "the next try is the first"
    else:
        assert not jobs.requeue_once(slurm, "n1", contained(), "7")
