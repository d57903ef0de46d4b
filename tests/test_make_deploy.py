"""What targets of make run: the real Makefile, programs that log; and the offer to bootstrap an account."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from needs import need
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.preflight import Report, Row
from ultracluster.cli import bootstrap
from ultracluster.cli import preflight as command

pytestmark = pytest.mark.slow

PROGRAM = """#!/bin/bash
echo "${0##*/} $*" >>"$CALLS"
[[ "$*" != *"$FAILING"* || -z $FAILING ]] || exit "${STATUS:-1}"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which everything is installed."""
    need("make")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "node_modules/.bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (
        "requirements.lock", "requirements-plan.lock", "requirements-build.lock", "requirements-node.lock",
        "pyproject.toml", "package.json", "package-lock.json",
        ".venv/.created", ".venv/.plan", ".venv/.run", ".venv/.node", "node_modules/.stamp",
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


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["validate"], "ultracluster validate environments/dev.yaml"),
        (["plan"], "ultracluster plan environments/dev.yaml"),
        (["synth"], "ultracluster synth dev"),
        (["deploy"], "ultracluster deploy dev"),
        (
            ["deploy", "YES=1", "DIFF_FLAGS=--accept-data-loss a/B", "WAIT_FLAGS=--no-smoke"],
            "ultracluster deploy dev --yes --accept-data-loss a/B --no-smoke",
        ),
        (["preflight"], "ultracluster preflight environments/dev.yaml --bootstrap"),
        (["release-lock"], "ultracluster software lock --for dev"),
        (["stacks"], "ultracluster deploy dev --stacks-only"),
        (["stacks", "YES=1"], "ultracluster deploy dev --stacks-only --yes"),
        (["wait"], "ultracluster wait environments/dev.yaml"),
        (["destroy"], "ultracluster destroy dev"),
        (["destroy", "YES=1"], "ultracluster destroy dev --yes"),
    ],
)
def test_a_target_is_the_command_of_its_name(checkout: Path, words: list[str], call: str) -> None:
    status, calls, said = make(checkout, *words)
    assert (status, calls) == (0, [call]), said


@pytest.mark.parametrize("words", [["synth"], ["deploy", "YES=1"], ["stacks", "YES=1"], ["destroy", "YES=1"]])
def test_a_target_fails_with_its_command(checkout: Path, words: list[str]) -> None:
    status, _, _ = make(checkout, *words, failing="dev", status=3)
    assert status != 0


@pytest.mark.parametrize(("status", "good"), [(0, True), (1, True), (2, False), (3, False)])
def test_what_restarts_is_no_failed_difference(checkout: Path, status: int, good: bool) -> None:
    code, calls, _ = make(checkout, "diff", failing="diff dev", status=status)
    assert (code == 0) == good and calls[-1] == "ultracluster diff dev --deployed"


VENV = "a virtual environment in .venv"
PLAN = [VENV, "Python packages for the plan"]
RUN = [*PLAN, "the CDK and the AWS SDK for Python"]
SYNTH = [*RUN, "Node 24 from its wheel"]
DEV = [*RUN, "Python packages of tests and linters"]
PYRIGHT = ["Node 24 from its wheel", "the CDK CLI, pyright and bats"]
SITE = "Python packages of the documentation site"


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("plan", PLAN),
        ("validate", PLAN),
        ("rehearse", PLAN),
        ("wheel", PLAN),
        ("wait", RUN),
        ("synth", SYNTH),
        ("deploy", [*SYNTH, "the CDK CLI"]),
        ("dist", DEV),
        ("facts", DEV),
        ("generate", [*DEV, "Node 24 from its wheel"]),
        ("lint", [*DEV, *PYRIGHT, "the prose linter"]),
        ("quick", [*DEV, *PYRIGHT]),
        ("site", [*RUN, SITE, *PYRIGHT]),
        (
            "test",
            [
                *DEV,
                *PYRIGHT,
                SITE,
                "ParallelCluster's validators",
                "Checkov and a CEL evaluator",
                "the IAM evaluator",
                "clients of AWS's SDK for JavaScript",
                "Grafana's types",
                "the prose linter",
            ],
        ),
    ],
)
def test_a_target_installs_what_it_needs_and_says_how_large_it_is(
    tmp_path: Path, target: str, steps: list[str]
) -> None:
    printed = re.findall(
        r'echo "(?:installing|creating) (.*?) \(about \d+ MB\) \.\.\."', dry_run(tmp_path, target)
    )
    assert printed == steps


def test_pip_and_npm_show_their_progress_on_a_terminal_only(tmp_path: Path) -> None:
    in_a_log, on_a_terminal = dry_run(tmp_path, "test"), dry_run(tmp_path, "test", MAKE_TERMOUT="/dev/pts/0")

    assert in_a_log.count(" -m pip --quiet") == on_a_terminal.count(" -m pip ") > 0
    assert in_a_log.count("--no-fund >/dev/null") == on_a_terminal.count("npm ci") > 0
    assert "--quiet" not in on_a_terminal and "--no-fund >/dev/null" not in on_a_terminal


def dry_run(folder: Path, target: str, **variables: str) -> str:
    """What make would run for a target in a new clone."""
    for name in ("Makefile", "pyproject.toml", "package.json", "package-lock.json"):
        (folder / name).touch()
    shutil.copy(ROOT / "Makefile", folder)
    for lock in ROOT.glob("requirements*.lock"):
        (folder / lock.name).touch()
    for tool in ("tests/iam_evaluator", "tests/emulated_account", "tests/grafana_schema", "tools/prose"):
        (folder / tool).mkdir(parents=True, exist_ok=True)
        (folder / tool / "package.json").touch()
        (folder / tool / "package-lock.json").touch()
    outer = ("MAKE", "DEPTH")  # of the make that runs these tests
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        ["make", "-n", target],
        cwd=folder,
        env=environment | {"PYTHON": "python3"} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


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
    monkeypatch.setattr("ultracluster.cli.preflight.ask", ask)
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
