"""Whatever takes more than two seconds shows that it is at work: every command, on a terminal only."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_tree import commands
from hostile_account import NODE, hostile_account
from project import ROOT
from pseudo_terminal import on_terminal
from typer.testing import CliRunner

from ultracluster.account import aws, under_way
from ultracluster.cli import progress, terminal
from ultracluster.cli.habits import HABITS
from ultracluster.cli.main import app
from ultracluster.cli.progress import LINE, LateBar, bars, working

DRAWN = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h", re.DOTALL)
"""From the moment at which rich hides the cursor to that at which it shows it again."""
RELEASE = str(ROOT / "lifecycle_scripts" / "releases" / "2026.11.lock")
USER = "users:\n  ada:\n    uid: 2001\n"
YES = ["--yes", "--despite-jobs", "--no-wait"]
WORDS: dict[str, list[str]] = {
    "capacity buy": ["{prod}", "--yes", "--max-usd", "1"],
    "capacity search": ["{prod}"],
    "connect": ["{dev}"],
    "cost": ["{dev}", "--live"],
    "deploy": ["dev", "--yes", "--stacks-only"],
    "destroy": ["dev", "--yes"],
    "diff": ["dev", "--deployed"],
    "doctor": ["{dev}"],
    "explain-placement": ["{dev}", "--nodes", NODE],
    "import": ["--cluster", "one", "--region", "us-east-2"],
    "job cancel": ["{eks-p5en}", "train", "--yes"],
    "job list": ["{eks-p5en}"],
    "job logs": ["{eks-p5en}", "train"],
    "job shell": ["{dev}"],
    "job submit": ["{eks-p5en}", "--nodes", "1", "--image", "torch:2.8"],
    "move": ["{prod}", "--to", "capacity:cr-0123456789abcdef0"],
    "nodes add": ["{dev}", "--group", "gpu", "--count", "1", "--yes", "--no-wait"],
    "nodes delete": ["{dev}", NODE, *YES],
    "nodes describe": ["{dev}", NODE],
    "nodes health-check": ["{dev}", NODE, "--yes", "--despite-jobs"],
    "nodes list": ["{dev}"],
    "nodes reboot": ["{dev}", NODE, *YES],
    "nodes replace": ["{dev}", NODE, *YES],
    "nodes restore": ["{dev}", "gpu", "--yes", "--no-wait"],
    "observability apply": ["{prod}", "--yes"],
    "permissions": ["{dev}", "--deployed"],
    "preflight": ["{dev}"],
    "prices update": ["{dev}"],
    "release lock": ["--for", "{parallelcluster-p5}"],
    "release mirror": ["--for", "{dev}", "--bucket", "mirror"],
    "render parallelcluster": ["{parallelcluster-p5}"],
    "software pin": ["{dev}"],
    "software update": ["{dev}", "--yes"],
    "synth": ["dev"],
    "teams apply": ["{dev}"],
    "users apply": ["{dev}"],
    "users token": ["{pcs-p6-b200}", "ada"],
    "wait": ["{dev}"],
}
"""A line for each command that may wait for AWS or for a synth."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds are over soon."""
    monkeypatch.setattr(progress, "LATE", 0.0)
    monkeypatch.setattr(progress, "TICK", 0.002)


def until_shown(seconds: float = 3.0) -> bool:
    """Wait, as AWS lets us wait; whether a person saw it."""
    end = time.monotonic() + seconds
    pause = threading.Event()  # time.sleep is gone in these tests
    while not LINE.is_shown and time.monotonic() < end:
        pause.wait(0.002)
    return LINE.is_shown


def project(folder: Path) -> Path:
    """A copy of what a command may write beside."""
    (folder / "environments").mkdir()
    for file in (ROOT / "environments").iterdir():
        if file.is_file():
            (folder / "environments" / file.name).write_bytes(file.read_bytes())
    pcs = folder / "environments" / "pcs-p6-b200.yaml"
    pcs.write_text(pcs.read_text().replace("  kind: pcs\n", "  kind: pcs\n  rest: true\n") + USER)
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
    waited: list[tuple[str, bool]] = []

    def ask(model: Any, **_: Any) -> None:
        if not any(what == model.name for what, _ in waited):  # once each: the time is ours
            waited.append((model.name, until_shown()))

    def synth(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        waited.append(("synth", until_shown()))
        return subprocess.CompletedProcess([], 1, "", "no synth in this test")

    def look_up(host: str, *_: Any, **__: Any) -> None:
        waited.append((f"look-up of {host}", until_shown()))
        raise socket.gaierror(-2, "no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    made._session.events.register_first("before-call", ask)
    under_way.watch(made._session.events)  # before it
    monkeypatch.setattr(aws, "Account", lambda *_, **__: made)
    monkeypatch.setattr("ultracluster.software.supply.mirror_bucket.s3_client", lambda *_: made.client("s3"))
    monkeypatch.setattr("ultracluster.project.synth.run_app", synth)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("ultracluster.cli.job_shell_kubernetes.at_terminal", lambda: True)
    monkeypatch.setattr("ultracluster.account.queue.kubernetes.kubectl.missing_programs", lambda: "")
    monkeypatch.chdir(here)

    shown = on_terminal(monkeypatch, *name.split(), *words)

    assert "Traceback" not in shown.text
    assert shown.code in (0, 1, 2, 3), shown.text
    assert waited, f"nothing was waited for: {shown.text}"
    assert [what for what, seen in waited if not seen] == []


QUICK: dict[str, list[str]] = {
    "acceptance gates": [],
    "acceptance judge": [str(ROOT / "tests" / "acceptance" / "logs"), "--type", "p5.48xlarge"],
    "acceptance manifest": ["--type", "p5.48xlarge", "--image", "nccl:1"],
    "choose": ["--slurm"],
    "image list": [],
    "image recipe": ["--release", "2026.11", "--orchestrator", "eks"],
    "image record": ["--script"],
    "image show": ["eks-al2023-nvidia-1.34-x86_64-20261012"],
    "init": ["--instance-type", "p5.48xlarge", "--nodes", "4", "--yes"],
    "job endpoint": ["hyperpod-eks-p5", "one", "--model", "hf:a/b", "--image", "vllm:v0.11.0"],
    "job jax": ["dev", "--nodes", "2"],
    "job pytorch": ["dev"],
    "job serve": ["hyperpod-eks-p5", "one", "--model", "hf:a/b", "--image", "vllm:v0.11.0"],
    "new": ["made"],
    "nodes why": ["dev", "Not responding"],
    "observability render": ["prod", "--to", "made"],
    "plan": ["dev", "--picture", "made.svg", "--html", "made.html"],
    "release check": ["2026.11"],
    "release list": [],
    "release schema": [],
    "release show": ["2026.11"],
    "render slurm-accounts": ["dev"],
    "render task-governance": ["dev"],
    "render team-namespaces": ["eks-p5en"],
    "rules": [],
    "schema": [],
    "users list": ["dev"],
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


def slow(seconds: float, *, late: float) -> str:
    """A program with a command that waits."""
    return f"""
import sys, time
from ultracluster.cli import main, progress, validate
progress.LATE = {late}
real = validate._validated
def waits(path):
    time.sleep({seconds})
    return real(path)
validate._validated = waits
main()
"""


def started(
    folder: Path, seconds: float, *words: str, late: float = 0.2, **variables: str
) -> tuple[Any, int]:
    import pty

    master, slave = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", slow(seconds, late=late), *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=(folder / "out").open("w"),
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables},
    )
    os.close(slave)
    return program, master


def rest(master: int) -> str:
    got = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            part = b""
        if not part:
            os.close(master)
            return got.decode()
        got += part


def test_it_comes_late_counts_and_leaves_no_trace(tmp_path: Path) -> None:
    program, master = started(tmp_path, 0.4, "validate", "dev", "prod", "--json")

    shown = rest(master)

    assert program.wait() == 0
    assert "checking" in shown
    assert "1/2" in shown
    assert shown.endswith("\x1b[1A\x1b[2K") or shown.rstrip().endswith("\x1b[2K"), repr(shown[-80:])
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")
    assert len(json.loads((tmp_path / "out").read_text())["environments"]) == 2


def test_nothing_before_two_seconds_and_none_for_those_who_do_not_look(tmp_path: Path) -> None:
    for words, late, variables in (
        (["validate", "dev", "--json"], progress.LATE, {}),
        (["validate", "dev", "--json", "--quiet"], 0.0, {}),
        (["-q", "validate", "dev", "--json"], 0.0, {}),
        (["validate", "dev", "--json"], 0.0, {"TERM": "dumb"}),
    ):
        program, master = started(tmp_path, 0.4, *words, late=late, **variables)
        assert (rest(master), program.wait()) == ("", 0), words


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_never_on_a_pipe(variables: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", slow(0.4, late=0.0), "validate", "dev"],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, **variables},
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("dev: 0 errors, 0 warnings\n", "")


def test_an_interrupt_ends_it_cleanly(tmp_path: Path) -> None:
    import signal

    program, master = started(tmp_path, 30, "validate", "dev", late=0.0)
    got = b""
    while b"checking" not in got:
        got += os.read(master, 4096)
    program.send_signal(signal.SIGINT)
    shown = (got + rest(master).encode()).decode()

    assert program.wait(10) == 130
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
