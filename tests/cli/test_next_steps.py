"""The step after a command depends on its end, and is for a person who looks on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from pseudo_terminal import on_terminal

from ultracluster.cli.next_steps import next_step

PROD = Path("environments/prod.yaml")
STEPS: list[tuple[str, dict[str, Any], int, str]] = [
    ("validate", {"environments": [Path("prod")]}, 0, "plan prod"),
    ("validate", {"environments": [Path("prod")]}, 2, ""),
    ("validate", {"environments": [Path("prod"), Path("dev")]}, 0, ""),
    ("validate", {"environments": [Path("a b.yaml")]}, 0, "plan 'a b.yaml'"),
    ("plan", {"environment": PROD}, 0, "preflight environments/prod.yaml"),
    ("preflight", {"environment": PROD, "profile": "ops"}, 0, f"deploy {PROD} --profile ops"),
    ("preflight", {"environment": PROD}, 1, ""),
    ("preflight", {"environment": PROD, "request_quotas": True}, 0, ""),
    ("init", {"output": None}, 0, ""),
    ("init", {"output": Path("environments/a.yaml")}, 0, "validate environments/a.yaml"),
    ("diff", {"environments": ["prod"], "deployed": True}, 1, "deploy prod"),
    ("diff", {"environments": ["prod"], "deployed": True}, 3, ""),
    ("diff", {"environments": ["dev", "prod"]}, 0, ""),
    ("deploy", {"environment": "prod", "profile": "x;y"}, 0, "connect prod --profile 'x;y'"),
    ("deploy", {"environment": "prod"}, 1, "doctor prod"),
    ("deploy", {"environment": "prod"}, 2, ""),
    ("wait", {"environment": "prod"}, 3, "wait prod"),
    ("nodes replace", {"environment": "prod", "dry_run": True}, 0, ""),
    ("nodes replace", {"environment": "prod", "dry_run": False}, 3, "nodes list prod"),
    ("nodes health-check", {"environment": "prod"}, 0, "nodes list prod --status DeepHealthCheckInProgress"),
    ("cost", {"environments": ["prod"], "profile": "ops"}, 0, "preflight prod --profile ops"),
    ("software lock", {"file": "a.lock", "profile": "none"}, 0, "software show a.lock --check"),
    ("rules", {}, 0, ""),
    ("of tomorrow", {"environment": "prod"}, 0, ""),
]


@pytest.mark.parametrize(("command", "given", "code", "step"), STEPS)
def test_what_comes_next(command: str, given: dict[str, Any], code: int, step: str) -> None:
    assert next_step(command, given, code) == step


def test_who_gets_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    line = "next: ultracluster plan dev"

    assert line in on_terminal(monkeypatch, "validate", "dev").text
    assert line in on_terminal(monkeypatch, "validate", "dev", out=tmp_path / "out").text
    assert line not in (tmp_path / "out").read_text()
    for words in (["validate", "dev", "--quiet"], ["-q", "validate", "dev"], ["validate", "dev", "--json"]):
        assert "next:" not in on_terminal(monkeypatch, *words).text, words
    assert "next:" not in on_terminal(monkeypatch, "validate", "nope").text
    assert "next:" not in on_terminal(monkeypatch, "validate", "dev", ULTRACLUSTER_PART="1").text


def test_nobody_on_a_pipe(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ultracluster.cli.main import app

    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        app(["validate", "dev"])
    assert capfd.readouterr().err == ""


def test_names_of_files_give_no_orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "environments" / "dev.yaml").read_text()
    name = "a\x1b[2J\nnext: ultracluster destroy prod.yaml"
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    shown = on_terminal(monkeypatch, "validate", name).text

    assert "\x1b[2J" not in shown
    assert not any(line.startswith("next: ultracluster destroy") for line in shown.splitlines())
