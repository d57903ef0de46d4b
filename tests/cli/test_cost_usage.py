"""`ultracluster cost --by`, over a queue of the test's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from json_contract import check_document
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account.aws import AccountError
from ultracluster.cli import cost_usage
from ultracluster.cli.main import app
from ultracluster.jobs import queue as queues
from ultracluster.plan.usage import Records, Run

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FIRST = datetime(2026, 11, 20, tzinfo=UTC).timestamp()


def run_of(job: str, user: str, hours: float, *nodes: str) -> Run:
    return Run(
        job=job, attempt="1", name="train\x1b[2J|x", user=user, team="vision", nodes=nodes,
        start=FIRST, end=FIRST + hours * 3600,
    )  # fmt: skip


class Fake:
    """A queue with records only."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.refusal: AccountError | None = None

    def records(self, *words: Any) -> Records:
        self.asked += words[1:]
        if self.refusal:
            raise self.refusal
        runs = (run_of("7", "alice", 12, "n1", "n2"), run_of("8", "", 6, "n1"))
        return Records(
            place="n0 as alice", now=NOW.timestamp(), runs=runs, groups={"n1": "gpu", "n2": "gpu"},
            notes=("Something\x1b[2J is missing",),
        )  # fmt: skip


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Fake]:
        yield fake

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cost_usage, "open_account", lambda *_: None)
    monkeypatch.setattr(queues, "open_queue", opened)
    return fake


def run(*words: str, code: int = 0, environment: str = "dev") -> Result:
    given = ["cost", environment, "--today", "2026-11-21", *words]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == code, result.output
    return result


DAY = ("--from", "2026-11-20", "--until", "2026-11-21")


def test_a_table_by_user(queue: Fake) -> None:
    printed = run("--by", "user", *DAY).stdout
    assert queue.asked == [datetime(2026, 11, 20, tzinfo=UTC), NOW]
    assert [line.split() for line in printed.splitlines()[2:8]] == [
        ["user", "node-hours", "accelerator-h", "USD", "of", "all", "jobs", "starts"],
        ["alice", "21.0", "84.0", "275.43", "42.6%", "1", "1"],
        ["(unknown", "user)", "3.0", "12.0", "39.35", "6.1%", "1", "1"],
        ["(idle)", "24.0", "96.0", "314.78", "48.7%"],
        ["(service", "nodes)", "48.0", "0.0", "16.59", "2.6%"],
        ["all", "nodes", "96.0", "192.0", "646.15", "100.0%", "2", "2"],
    ]
    assert "Asked: n0 as alice" in printed and "\x1b" not in printed


def test_json_has_the_same_sums(queue: Fake) -> None:
    for by in ("user", "team", "job"):
        text = run("--by", by, *DAY, "--json").stdout
        check_document(text)
        document = json.loads(text)
        assert document["schema"] == "ultracluster.usage/1" and document["by"] == by
        kinds = [row["kind"] for row in document["rows"]]
        assert kinds[-2:] == ["idle", "service"] and {*kinds[:-2]} == {"use"}
        for key in ("node_hours", "accelerator_hours", "usd"):
            parts = sum(row[key] for row in document["rows"])
            assert parts == pytest.approx(document["total"][key], abs=0.05)
    assert document["rows"][0]["user"] == "alice" and document["rows"][1]["user"] is None


def test_markdown_is_a_table(queue: Fake) -> None:
    printed = run("--by", "job", *DAY, "--markdown").stdout
    assert (
        "| job | user | team | node-hours | accelerator-h | USD | of all | jobs | starts | name |" in printed
    )
    assert "\x1b" not in printed and "\\|x |" in printed


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--by", "project"], "--by project: user, team or job"),
        (["--by", "user", "--from", "soon"], "--from soon: write a day or a time"),
        (["--by", "user", "--from", "2026-11-21", "--until", "2026-11-20"], "is not before --until"),
        (["--by", "user", "--from", "2027-01-01", "--until", "2027-02-01"], "is in the future"),
        (["--by", "user", "--strict"], "leave --spent and --strict out"),
        (["--until", "2026-11-20"], "--until goes with --by"),
        (["--as", "alice"], "--as goes with --by"),
        (["--since", "2026-11-20"], "--since goes with --spent, or with --by"),
    ],
)
def test_words_that_do_not_fit(queue: Fake, words: list[str], says: str) -> None:
    assert says in run(*words, code=2).stderr
    assert not queue.asked


def test_a_scheduler_that_does_not_answer(queue: Fake) -> None:
    queue.refusal = AccountError("sacct on n0: Slurm accounting storage is disabled")
    assert "storage is disabled" in run("--by", "user", code=2).stderr
    assert "--as is for Slurm" in run("--by", "user", "--as", "alice", code=2, environment="eks-p5en").stderr


def test_a_day_is_that_of_utc_and_an_offset_counts(queue: Fake) -> None:
    run("--by", "user", "--from", "2026-11-20T12:00+02:00", "--until", "2026-11-20T12:00")
    assert queue.asked == [datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)]
