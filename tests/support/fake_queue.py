"""A queue of the test's own for `ultracluster job`: it keeps what is submitted, and answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account.aws import AccountError
from ultracluster.cli import job_queue, job_watch
from ultracluster.cli.main import app
from ultracluster.jobs.queue.protocol import LogPart, NoSuchJobError, QueuedJob, Submission

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=mine\ntrue\n"
JOB = QueuedJob(
    id="42", name="train\x1b[2J", user="alice", team="vision", state="running", nodes=("n1", "n2"),
    submitted=datetime(2026, 11, 23, tzinfo=UTC), started=datetime(2026, 11, 23, tzinfo=UTC),
)  # fmt: skip


class Fake:
    """A queue with one job, which runs for some looks."""

    place = "a test"

    def __init__(self) -> None:
        self.submitted: list[Submission] = []
        self.refusal: BaseException | None = None
        self.states: list[Any] = ["running", "running", "completed"]
        self.logs = [b"hello\n", b"step 1 loss 0.5\nst", b"ep 2 loss 0.25\n", b""]
        self.failures = 0
        self.cancelled: list[str] = []

    def submit(self, submission: Submission) -> QueuedJob:
        self.submitted.append(submission)
        if self.refusal:
            raise self.refusal
        return JOB

    def jobs(self, *, everyone: bool = False) -> Sequence[QueuedJob]:
        other = replace(JOB, id="43", user="bob", team="speech", state="waiting", why="Priority")
        return [JOB, other] if everyone else [JOB]

    def job(self, job_id: str) -> QueuedJob:
        if job_id != "42":
            raise NoSuchJobError(f"Slurm knows no job {job_id}")
        if self.failures:
            self.failures -= 1
            raise AccountError("the session ended")
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return replace(JOB, state=state, exit_code=3 if state == "failed" else None)

    def log(self, job_id: str, after: str = "", *, lines: int | None = None, part: str = "") -> LogPart:
        number = int(after or 0)
        data = self.logs[number] if number < len(self.logs) else b""
        return LogPart(data, str(number + 1), number + 1 < len(self.logs) and not data.startswith(b"hello"))

    def cancel(self, ids: Sequence[str]) -> Mapping[str, str]:
        self.cancelled += ids
        return dict.fromkeys(ids, "")

    def close(self) -> None:
        pass


def opened(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The queue that the commands open from now on, in the folder of the project."""
    fake = Fake()

    @contextmanager
    def ours(*_: object, **__: object) -> Iterator[Fake]:
        yield fake

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(job_queue, "open_account", lambda *_: None)
    monkeypatch.setattr(job_queue, "open_queue", ours)
    monkeypatch.setattr(job_watch, "EVERY", 0.0)
    return fake


def run(*words: str, stdin: str | bytes = "", code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["job", *words], input=stdin)
    assert result.exit_code == code, result.output
    return result
