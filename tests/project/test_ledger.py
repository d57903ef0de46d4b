"""The ledger under kills, full disks, planted files and hostile content: never a purchase that it forgets."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ultracluster.project.ledger import Intent, exclusive, ledger_of
from ultracluster.project.place import ProjectError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prod.yaml"


def intent() -> Intent:
    return Intent(
        action="capacity buy", subject="cb-1", settle="ultracluster capacity buy prod --settle",
        account="111122223333", region="us-east-2", usd=5.0, details={},
    )  # fmt: skip


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: what a file has no room for is not written, and the end of a write is cut."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def bought(file: Path, name: str) -> None:
    with exclusive(file, "capacity buy") as ledger:
        ledger.begin(intent())
        ledger.complete(name)


def test_a_full_disk_tears_no_line(file: Path) -> None:
    bought(file, "cr-1")
    before = ledger_of(file).read_text()
    with exclusive(file, "capacity buy") as ledger:
        ledger.begin(intent())
        with files_of_at_most(len(before) + 20), pytest.raises(OSError, match="too large"):
            ledger.complete("cr-2")
    assert ledger_of(file).read_text() == before

    with exclusive(file, "capacity buy") as ledger:  # when there is room again
        assert ledger.intent and ledger.usd == 10
        ledger.complete("cr-2")
    assert [json.loads(line)["id"] for line in ledger_of(file).read_text().splitlines()] == ["cr-1", "cr-2"]


def test_an_intent_that_does_not_fit_is_none(file: Path) -> None:
    with exclusive(file, "capacity buy") as ledger:
        with files_of_at_most(150), pytest.raises(ProjectError, match="Nothing changed: the intent cannot"):
            ledger.begin(intent())
        assert ledger.intent is None
    with exclusive(file, "capacity buy") as ledger:
        assert ledger.intent is None and ledger.usd == 0


def test_without_any_room_nothing_begins(file: Path) -> None:
    with files_of_at_most(0), pytest.raises(ProjectError, match="Nothing changed"), exclusive(file, "x"):
        raise AssertionError("it began")
    with exclusive(file, "capacity buy") as ledger:
        assert ledger.intent is None


@pytest.mark.parametrize(
    "line",
    [
        '{"usd": NaN}',
        '{"usd": -1}',
        '{"usd": 1e400}',
        '{"usd": "-inf"}',
        "[]",
        "7",
        "null",
        "[" * 100_000,
        '{"usd',
    ],
    ids=lambda line: line[:14],
)
def test_a_line_that_would_raise_the_limit_stops_it(file: Path, line: str) -> None:
    ledger_of(file).write_text(f'{{"usd": 1}}\n{line}\n')
    with pytest.raises(ProjectError, match=r"prod\.ledger\.jsonl:2: not a line"), exclusive(file, "x"):
        raise AssertionError("it began")


def test_a_line_without_its_end_gets_no_other_behind_it(file: Path) -> None:
    """Whoever edited the file may have left the last line end out."""
    ledger_of(file).write_text('{"usd": 1}')
    bought(file, "cr-1")
    with exclusive(file, "capacity buy") as ledger:
        assert ledger.usd == 6


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"intent": []}', '{"intent": {"usd": NaN}}', "null", "7", "\0"]
)
def test_an_intent_of_another_shape_stops_it(file: Path, content: str) -> None:
    file.with_name(".prod.intent").write_text(content)
    with pytest.raises(ProjectError, match="cannot be read, and may record"), exclusive(file, "x"):
        raise AssertionError("it began")


@pytest.mark.parametrize("usd", [float("nan"), -1.0, float("inf"), "5"])
def test_an_intent_of_no_price_stops_it(file: Path, usd: Any) -> None:
    document = {"intent": {name: getattr(intent(), name) for name in Intent.__slots__} | {"usd": usd}}
    file.with_name(".prod.intent").write_text(json.dumps(document))
    with pytest.raises(ProjectError, match="cannot be read, and may record"), exclusive(file, "x"):
        raise AssertionError("it began")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "device"])
def test_a_planted_intent_is_refused(file: Path, kind: str) -> None:
    planted = file.with_name(".prod.intent")
    match kind:
        case "pipe":
            os.mkfifo(planted)
        case "folder":
            planted.mkdir()
        case "link":
            planted.symlink_to(file.with_name("victim"))
        case _:
            os.mknod(planted, 0o666 | 0o020000, os.makedev(1, 5))
    with pytest.raises(ProjectError, match="Nothing changed"), exclusive(file, "x"):
        raise AssertionError("it began")
    assert not file.with_name("victim").exists()


HOLDS = """
import sys, time
from pathlib import Path
from ultracluster.project.ledger import Intent, exclusive
with exclusive(Path(sys.argv[1]), "capacity buy") as ledger:
    if sys.argv[2] == "begun":
        words = dict.fromkeys(("action", "subject", "settle", "account", "region"), "x")
        ledger.begin(Intent(**words, usd=5.0, details={}))
    print("here", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow  # processes
@pytest.mark.parametrize("at", ["before the intent", "begun"])
def test_kill_9_ends_the_lock_and_keeps_the_intent(file: Path, at: str) -> None:
    words = [sys.executable, "-c", HOLDS, str(file), at]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "here\n"
        first = rf"Nothing changed: `[a-z ]+` \(process {process.pid} on .* is at work"
        with pytest.raises(ProjectError, match=first), exclusive(file, "capacity buy"):
            raise AssertionError("two at once")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with exclusive(file, "capacity buy") as ledger:
        assert (ledger.intent is not None) == (at == "begun")
        assert ledger.intent is None or (ledger.intent.process, ledger.usd) == (process.pid, 5)
