"""Whatever takes more than two seconds shows that it is at work: every command, on a terminal only."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import keys
from command_line import ultracluster
from command_tree import commands
from hostile_account import NODE, hostile_account
from processes import until
from project import ROOT
from pseudo_terminal import on_terminal
from typer.testing import CliRunner

from ultracluster.account import aws, under_way
from ultracluster.cli import progress, progress_drawing, terminal, validate
from ultracluster.cli.habits import HABITS
from ultracluster.cli.main import app
from ultracluster.cli.progress import LINE, LateBar, bars, working
from ultracluster.config.loader import Loaded
from ultracluster.project.ledger import Intent, exclusive

__all__ = ["keys"]

DRAWN = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h", re.DOTALL)
"""From the moment at which rich hides the cursor to that at which it shows it again."""
RELEASE = str(ROOT / "lifecycle_scripts" / "releases" / "2026.11.lock")
USER = "users:\n  ada:\n    uid: 2001\n"
YES = ["--yes", "--despite-jobs", "--no-wait"]
WORDS: dict[str, list[str]] = {
    "apply": ["users", "{dev}"],
    "capacity buy": ["{prod}", "--yes", "--max-usd", "1"],
    "capacity search": ["{prod}"],
    "connect": ["{dev}"],
    "cost": ["{dev}", "--live"],
    "deploy": ["dev", "--yes", "--stacks-only"],
    "destroy": ["dev", "--yes"],
    "diff": ["dev", "--deployed"],
    "doctor": ["{dev}"],
    "export": ["parallelcluster", "{parallelcluster-p5}"],
    "import": ["--cluster", "one", "--region", "us-east-2"],
    "job cancel": ["{eks-p5en}", "train", "--yes"],
    "job list": ["{eks-p5en}"],
    "job logs": ["{eks-p5en}", "train"],
    "job shell": ["{dev}"],
    "job submit": ["{eks-p5en}", "--nodes", "1", "--image", "torch:2.8"],
    "job why": ["{dev}", "--nodes", NODE],
    "list": [],
    "move": ["{prod}", "--to", "capacity:cr-0123456789abcdef0"],
    "nodes add": ["{dev}", "--group", "gpu", "--count", "1", "--yes", "--no-wait"],
    "nodes delete": ["{dev}", NODE, *YES],
    "nodes health-check": ["{dev}", NODE, "--yes", "--despite-jobs"],
    "nodes list": ["{dev}"],
    "nodes reboot": ["{dev}", NODE, *YES],
    "nodes replace": ["{dev}", NODE, *YES],
    "permissions": ["{dev}", "--deployed"],
    "preflight": ["{dev}"],
    "software lock": ["--for", "{parallelcluster-p5}"],
    "software mirror": ["--for", "{dev}", "--bucket", "mirror"],
    "software update": ["{dev}", "--yes"],
    "status": ["{dev}", "--no-jobs"],
    "synth": ["dev"],
    "users": ["{pcs-p6-b200}", "--token", "ada"],
    "wait": ["{dev}"],
}
"""A line for each command that may wait for AWS or for a synth."""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds are over soon."""
    monkeypatch.setattr(progress, "LATE", 0.0)
    monkeypatch.setattr(progress, "TICK", 0.002)


def project(folder: Path) -> Path:
    """A copy of what a command may write beside."""
    (folder / "environments").mkdir()
    for file in (ROOT / "environments").iterdir():
        if file.is_file():
            (folder / "environments" / file.name).write_bytes(file.read_bytes())
    pcs = folder / "environments" / "pcs-p6-b200.yaml"
    pcs.write_text(pcs.read_text().replace("  kind: pcs\n", "  kind: pcs\n  rest: true\n") + USER)
    lost = Intent(
        action="nodes replace", subject="i-1", settle="", account="", region="", details={"nodes": ["i-1"]}
    )
    with exclusive(folder / "environments" / "trainium.yaml", "nodes replace") as ledger:
        ledger.begin(lost)
    for name in ("app.py", "cdk.json"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def test_a_line_for_each_command_that_waits() -> None:
    """A new command says what it waits for in HABITS, and how it is called here."""
    waiting = {name for name, _ in commands() if set(HABITS[name].waits) & {"AWS", "a synth"}}

    assert waiting == WORDS.keys()


@pytest.mark.parametrize("name", sorted(WORDS))
@pytest.mark.usefixtures("at_once")
def test_no_request_and_no_synth_without_a_sign(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = project(tmp_path)
    words = [
        re.sub(r"\{(.*)\}", lambda found: str(here / "environments" / f"{found[1]}.yaml"), word)
        for word in WORDS[name]
    ]
    file = next((Path(one) for one in words if "/" in one), here / "environments" / "dev.yaml")
    made = hostile_account(7, re.findall(r"^region: (\S+)", file.read_text(), re.MULTILINE)[0])
    waited: list[str] = []

    def wait_for_the_line(asked: str) -> None:
        """As AWS lets a person wait."""
        if asked not in waited:  # once each: the time is ours
            waited.append(asked)
            until(lambda: LINE.is_shown)

    def ask(model: Any, **_: Any) -> None:
        wait_for_the_line(model.name)

    def synth(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        wait_for_the_line("synth")
        return subprocess.CompletedProcess([], 1, "", "no synth in this test")

    def look_up(host: str, *_: Any, **__: Any) -> None:
        wait_for_the_line(f"look-up of {host}")
        raise socket.gaierror(-2, "no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    made._session.events.register_first("before-call", ask)
    under_way.watch(made._session.events)  # before it
    monkeypatch.setattr(aws, "Account", lambda *_, **__: made)
    monkeypatch.setattr("ultracluster.cli.release_mirror.s3_client", lambda *_: made.client("s3"))
    monkeypatch.setattr("ultracluster.project.synth.run_app", synth)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("ultracluster.cli.job_shell_kubernetes.at_terminal", lambda: True)
    monkeypatch.setattr("ultracluster.jobs.queue.kubernetes.kubectl.missing_programs", lambda: "")
    monkeypatch.chdir(here)

    shown = on_terminal(monkeypatch, *name.split(), *words)

    assert "Traceback" not in shown.text
    assert shown.code in (0, 1, 2, 3), shown.text
    assert waited, f"nothing was waited for: {shown.text}"


QUICK: dict[str, list[str]] = {
    "acceptance": [str(ROOT / "tests" / "acceptance" / "logs"), "--type", "p5.48xlarge"],
    "choose": ["--slurm"],
    "init": ["--instance-type", "p5.48xlarge", "--nodes", "4", "--yes"],
    "job write": ["dev", "--nodes", "2"],
    "new": ["made"],
    "plan": ["dev", "--picture", "made.svg", "--html", "made.html"],
    "rules": [],
    "schema": [],
    "serve": ["hyperpod-eks-p5", "one", "--model", "hf:a/b", "--image", "vllm:v0.11.0"],
    "software recipe": ["--release", "2026.11", "--orchestrator", "eks"],
    "software record": ["--script"],
    "software show": ["2026.11", "--check"],
    "validate": ["environments"],
}
"""The others: they ask nobody and wait for nobody."""


def test_a_line_for_each_other_command() -> None:
    assert {name for name, _ in commands()} - WORDS.keys() == QUICK.keys()


@pytest.mark.parametrize("name", sorted(QUICK))
def test_the_others_wait_for_nobody(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def waits(*_: Any, **__: Any) -> None:
        raise AssertionError(f"{name} waits: say in HABITS for what")

    monkeypatch.chdir(project(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", waits)
    monkeypatch.setattr(subprocess, "Popen", waits)
    monkeypatch.setattr(time, "sleep", waits)

    ended = CliRunner().invoke(app, [*name.split(), *QUICK[name]])

    assert isinstance(ended.exception, SystemExit | None), ended.exception
    assert ended.exit_code in (0, 1, 2, 3)


# ---- the line itself


def read_when(
    monkeypatch: pytest.MonkeyPatch, may_continue: Callable[[], bool], *, late: float = 0.0
) -> None:
    """`validate` reads each file only when it may continue."""
    read = validate._validated

    def waits(path: Path, loaded: list[Loaded]) -> validate.Validated:
        until(may_continue)
        return read(path, loaded)

    monkeypatch.setattr(progress, "LATE", late)
    monkeypatch.setattr(validate, "_validated", waits)


def for_a_while() -> Callable[[], bool]:
    """Long enough for an unexpected line to appear."""
    end = time.monotonic() + 0.3
    return lambda: time.monotonic() > end


def test_it_counts_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[int] = []
    draw = progress_drawing._Drawn.now

    def now(self: Any) -> Any:
        drawn.append(LINE.newest()[0].done)
        return draw(self)

    monkeypatch.setattr(progress_drawing._Drawn, "now", now)
    # a second drawing begins when the first is on the terminal
    read_when(monkeypatch, lambda: drawn.count(LINE.newest()[0].done) > 1)
    shown = on_terminal(monkeypatch, "validate", "dev", "prod", "--json", out=tmp_path / "out")

    assert shown.code == 0
    assert "checking" in shown.text
    assert "1/2" in shown.text
    assert shown.text.rstrip().endswith("\x1b[2K"), repr(shown.text[-80:])
    assert shown.text.count("\x1b[?25l") == shown.text.count("\x1b[?25h")
    assert len(json.loads((tmp_path / "out").read_text())["environments"]) == 2


def test_two_seconds_are_late() -> None:
    assert progress.LATE == 2.0


@pytest.mark.parametrize(
    ("words", "late", "variables"),
    [
        (["validate", "dev", "--json"], 3600.0, {}),
        (["validate", "dev", "--json", "--quiet"], 0.0, {}),
        (["-q", "validate", "dev", "--json"], 0.0, {}),
        (["validate", "dev", "--json"], 0.0, {"TERM": "dumb"}),
    ],
)
def test_nothing_before_it_is_late_and_none_for_those_who_do_not_look(
    words: list[str],
    late: float,
    variables: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    read_when(monkeypatch, for_a_while(), late=late)
    shown = on_terminal(monkeypatch, *words, out=tmp_path / "out", **variables)

    assert (shown.text, shown.code) == ("", 0)


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_never_on_a_pipe(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    read_when(monkeypatch, for_a_while())
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    done = ultracluster("validate", "dev")

    assert (done.returncode, done.stdout, done.stderr) == (0, "dev: 0 errors, 0 warnings\n", "")


def test_an_interrupt_ends_it_cleanly(tmp_path: Path) -> None:
    program = """
import time
from ultracluster.cli import main, progress, progress_drawing, validate
progress.LATE = 0.0
validate._validated = lambda path, loaded: time.sleep(600)
main()
"""
    master, slave = pty.openpty()
    with (tmp_path / "out").open("w") as out:
        running = subprocess.Popen(
            [sys.executable, "-c", program, "validate", "dev"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
        )
    os.close(slave)
    got = b""
    while b"checking" not in got:
        got += os.read(master, 4096)
    running.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the terminal closes with the program
        while part := os.read(master, 65536):
            got += part
    os.close(master)
    shown = got.decode()

    assert running.wait(300) == 130
    assert "Traceback" not in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")
    assert (tmp_path / "out").read_text() == ""


# ---- its parts


@pytest.fixture
def line() -> Iterator[None]:
    with terminal.asked():
        yield
        LINE.end()


@pytest.mark.usefixtures("line")
def test_the_newest_wait_is_told() -> None:
    assert LINE.waits_for == ""
    with working("outer") as say:
        say("still outer")
        with LateBar("inner") as bar:
            bar(1, 3)
            assert LINE.waits_for == "inner"
            assert (LINE.newest()[0].done, LINE.newest()[0].of) == (1, 3)
        assert LINE.waits_for == "still outer"
    assert LINE.waits_for == ""


@pytest.mark.usefixtures("line")
def test_bars_stand_for_the_line() -> None:
    with bars() as drawn:
        drawn.add_task("one", total=2)
        assert LINE.is_shown
    assert not LINE.is_shown


@pytest.mark.usefixtures("line")
def test_a_wait_that_fails_is_over() -> None:
    with pytest.raises(ValueError, match="wrong"), working("something"):
        raise ValueError("wrong")
    assert LINE.waits_for == ""
