"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import typer
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.plan import plan

README = (ROOT / "README.md").read_text()


def block(language: str, starts: str) -> str:
    """The code block of a language that begins with `starts`."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return next(one for one in blocks if one.startswith(starts))


def test_the_plan_is_the_one_that_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    app.command("plan")(plan)
    monkeypatch.chdir(ROOT)

    printed = CliRunner().invoke(app, ["prod", "--today", "2026-11-21"])  # prices expire, the page does not

    assert printed.exit_code == 0
    assert printed.stdout.splitlines() == block("text", "prod:").splitlines()


def test_the_example_is_the_file() -> None:
    code = (ROOT / "examples" / "own_app" / "app.py").read_text()

    assert block("python", "from aws_cdk") in code


def test_the_overlay_and_the_error_are_real(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text((ROOT / "environments" / "dev.yaml").read_text())
    overlay = tmp_path / "environments" / "big.yaml"
    overlay.write_text(block("yaml", "# yaml-language-server"))
    command = ["ultracluster", "validate", "environments/big.yaml"]

    good = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    overlay.write_text(overlay.read_text() + "storage:\n  lustre:\n    capacity_gib: 5000\n")
    bad = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert good.returncode == 0, good.stderr
    assert bad.returncode == 2
    shown = block("text", "environments/big.yaml").splitlines()
    assert shown == bad.stderr.splitlines()[: len(shown)]
