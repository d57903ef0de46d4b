"""`ultracluster apply observability` on HyperPod with Slurm: how the extension's life reads and ends.

What is asked of AWS is in test_observability_extension.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hyperpod_service import account
from json_contract import check_document
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account import observability_extension as extension
from ultracluster.account.aws import AccountError
from ultracluster.account.observability_extension import Found, Issue, Step
from ultracluster.cli.main import app

Run = Callable[..., Any]
CREATE = Step(action="create", why="the cluster has no extension sagemaker-observability")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    aws_account = account("us-west-2")
    monkeypatch.setattr(aws, "Account", lambda **_: aws_account)

    def invoke(
        step: Step | Exception, *words: str, found: Found | None = None, kind: str = "hyperpod"
    ) -> tuple[Any, list[Any]]:
        file = tmp_path / "dev.yaml"
        with file.open("w") as out:
            YAML(typ="safe").dump(changed(environment_data("dev"), {"observability": {"kind": kind}}), out)
        asked: list[Any] = []

        def examine(*_: Any) -> Any:
            if isinstance(step, Exception):
                raise step
            return SimpleNamespace(arn="arn:cluster"), step

        def carry_out(_: Any, arn: str, one: Step, *, tags: dict[str, str]) -> str:
            asked.append((arn, one.action, tags))
            return "arn:extension"

        def follow(*_: Any, report: Callable[[Found], None]) -> Found | None:
            if found:
                report(found)
            return found

        monkeypatch.setattr(extension, "examine", examine)
        monkeypatch.setattr(extension, "carry_out", carry_out)
        monkeypatch.setattr(extension, "follow", follow)
        return CliRunner().invoke(
            app, ["apply", "observability", str(file), "--account", "111122223333", *words]
        ), asked

    return invoke


def test_the_extension_is_made_and_followed(run: Run) -> None:
    active = Found(arn="a", version="1.2.0", status="Active", nodes=9, active=9)
    result, asked = run(CREATE, "--yes", found=active)
    assert result.exit_code == 0, result.output
    assert "create extension sagemaker-observability: the cluster has no extension" in result.stdout
    assert "sagemaker-observability: Active, 9 of 9 nodes" in result.stderr
    assert asked == [("arn:cluster", "create", {"ultracluster:environment": "dev"})]


def test_a_dry_run_and_no_yes_ask_for_nothing(run: Run) -> None:
    result, asked = run(CREATE, "--dry-run")
    assert result.exit_code == 0 and asked == []
    result, asked = run(CREATE)
    assert result.exit_code == 2 and asked == []


@pytest.mark.parametrize(("status", "code", "state"), [
    ("Active", 0, "done"), ("Degraded", 0, "done"),
    ("CreateFailed", 1, "failed"), ("Creating", 3, "under way"),
])  # fmt: skip
def test_how_it_ended_is_told(run: Run, status: str, code: int, state: str) -> None:
    issue = Issue(code="DependencyUnreachable", message="no route to aps-workspaces", nodes=2)
    found = Found(arn="a", version="1.2.0", status=status, nodes=9, active=7, issues=(issue,))
    result, _ = run(CREATE, "--yes", "--json", found=found)
    assert result.exit_code == code, result.output
    [row] = check_document(result.stdout)["rows"]
    assert row["state"] == state
    assert "DependencyUnreachable on 2 nodes: no route to aps-workspaces" in row["details"]


def test_what_cannot_be_is_refused_before_anything_is_asked(run: Run) -> None:
    result, asked = run(
        Step(action="refuse", why="version 2.0.0 is there, and a version only goes upwards"), "--yes"
    )
    assert result.exit_code == 2 and "only goes upwards" in result.stderr and asked == []
    result, asked = run(AccountError("cluster dev is Creating"), "--yes")
    assert result.exit_code == 2 and "cluster dev is Creating" in result.stderr and asked == []


def test_one_that_is_not_asked_for_is_deleted_and_not_knowing_is_said(run: Run) -> None:
    result, asked = run(
        Step(action="delete", why="the file does not ask for it", arn="a"), "--yes", kind="prometheus"
    )
    assert result.exit_code == 0 and asked[0][1] == "delete"
    assert "delete extension sagemaker-observability: the file does not ask for it" in result.stdout
    result, asked = run(AccountError("access denied"), "--yes", kind="prometheus")
    assert result.exit_code == 0 and asked == []
    assert "has the extension sagemaker-observability is not known: access denied" in result.stdout
    result, asked = run(Step(action="none", why="none"), "--yes", kind="prometheus")
    assert result.exit_code == 0 and "nothing to do" in result.stdout and asked == []
