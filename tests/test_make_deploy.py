"""What `make deploy` runs, in which order, and where it stops: the real Makefile, and programs that log."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws, preflight
from ultracluster.account.preflight import Report, Row
from ultracluster.cli import bootstrap
from ultracluster.cli import preflight as command

PROGRAM = """#!/bin/bash
echo "${0##*/} $*" >>"$CALLS"
[[ "$*" != *"$FAILING"* || -z $FAILING ]] || exit "${STATUS:-1}"
"""
ALL = [
    "ultracluster preflight environments/dev.yaml --bootstrap",
    "ultracluster release lock --for dev",
    "ultracluster validate --quiet environments/dev.yaml",
    "ultracluster diff dev --deployed",
    "ultracluster validate --quiet environments/dev.yaml",
    "cdk deploy -c env=dev --all --concurrency 8 --require-approval never",
    "ultracluster wait environments/dev.yaml",
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which everything is installed."""
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "node_modules/.bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (
        "requirements.lock", "pyproject.toml", "package.json", "package-lock.json", "requirements-node.lock",
        ".venv/.created", ".venv/.run", ".venv/.node", "node_modules/.stamp",
    ):  # fmt: skip
        (tmp_path / name).touch()
    for name in ("ultracluster", "cdk"):
        file = tmp_path / ".venv/bin" / name
        file.write_text(PROGRAM)
        file.chmod(0o755)
    return tmp_path


def make(
    checkout: Path, *words: str, failing: str = "", status: int = 1, **more: Any
) -> tuple[int, list[str], str]:
    calls = checkout / "calls"
    calls.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "CALLS": str(calls),
        "FAILING": failing,
        "STATUS": str(status),
        "MAKEFLAGS": "",
    }
    asked = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more}
    done = subprocess.run(["make", *words, "ENV=dev"], cwd=checkout, env=environment, check=False, **asked)
    said = (done.stdout or b"").decode()
    return done.returncode, [line.strip() for line in calls.read_text().splitlines()], said


def test_deploy_runs_every_part_in_order(checkout: Path) -> None:
    status, calls, said = make(checkout, "deploy", "YES=1")
    assert status == 0, said
    assert calls == ALL


@pytest.mark.parametrize(
    ("part", "failing"),
    [
        ("preflight",) * 2,
        ("release lock",) * 2,
        ("diff dev",) * 2,
        ("cdk deploy", "-c env=dev"),
        ("wait",) * 2,
    ],
)
def test_it_stops_at_the_part_that_fails(checkout: Path, part: str, failing: str) -> None:
    status, calls, _ = make(checkout, "deploy", "YES=1", failing=failing, status=2)
    number = next(place for place, call in enumerate(ALL) if part in call)
    assert status != 0 and calls == ALL[: number + 1]


def test_what_restarts_does_not_stop_it(checkout: Path) -> None:
    status, calls, _ = make(checkout, "deploy", "YES=1", failing="diff", status=1)
    assert status == 0 and calls == ALL


@pytest.mark.parametrize(
    ("target", "calls"),
    [("preflight", ALL[:1]), ("release-lock", ALL[1:2]), ("diff", ALL[2:4]), ("wait", ALL[6:])],
)
def test_each_part_runs_by_itself(checkout: Path, target: str, calls: list[str]) -> None:
    assert make(checkout, target)[:2] == (0, calls)


def test_without_a_terminal_nothing_is_deployed_unasked(checkout: Path) -> None:
    status, calls, said = make(checkout, "stacks")
    assert status != 0 and not any("cdk deploy" in call for call in calls)
    assert "make stacks ENV=dev YES=1 deploys without a question" in said


@pytest.mark.parametrize(("answer", "deployed"), [("y", True), ("n", False), ("", False)])
def test_a_terminal_is_asked_after_the_security_changes(checkout: Path, answer: str, deployed: bool) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    status, calls, said = make(checkout, "stacks", stdin=theirs)
    os.close(theirs)
    os.close(ours)
    assert "cdk diff -c env=dev --security-only" in calls and "Deploy dev? [y/N]" in said
    assert any("cdk deploy" in call for call in calls) == deployed
    assert (status == 0) == deployed


def row(level: Any) -> Report:
    return Report(
        {
            "account": [
                Row("CDK bootstrap", level, "this account is not bootstrapped", "npx cdk bootstrap aws://1/r")
            ]
        }
    )


@pytest.mark.parametrize(
    ("terminal", "answer", "status", "asked", "code"),
    [
        (True, "y\n", 0, 2, 0),
        (True, "n\n", 0, 1, 1),
        (True, "y\n", 1, 1, 1),
        (True, "", 0, 1, 1),
        (False, "y\n", 0, 1, 1),
    ],
)
def test_bootstrap_is_offered_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, answer: str, status: int, asked: int, code: int
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("JSII_NODE", "node")  # else its version is asked for
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    made = account()
    reports = [row("red"), row("green")]
    looks: list[int] = []
    ran: list[list[str]] = []

    def ask(*_: Any, **__: Any) -> Report:
        looks.append(1)
        return reports[len(looks) - 1]

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        ran.append(words)
        return subprocess.CompletedProcess(words, status)

    class Terminal:
        def __getattr__(self, name: str) -> Any:
            return getattr(__import__("sys").stdin, name)

        def isatty(self) -> bool:
            return terminal

    class Sys:
        stdin = Terminal()

    monkeypatch.setattr(aws, "Account", lambda **_: made)
    monkeypatch.setattr(preflight, "preflight", ask)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bootstrap, "sys", Sys)
    app = __import__("typer").Typer()
    app.command()(command.preflight)
    file = str(ROOT / "environments" / "dev.yaml")
    result = CliRunner().invoke(app, [file, "--bootstrap"], input=answer)
    assert result.exit_code == code and len(looks) == asked, result.output
    assert bool(ran) == (terminal and answer == "y\n")
    assert all(words[-2:] == ["bootstrap", "aws://1/r"] for words in ran)
    if not terminal:
        assert "npx cdk bootstrap aws://1/r" in result.output and "now?" not in result.output
