"""Quiet, colours and widths: who decides, and that every command obeys."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from pseudo_terminal import on_terminal
from typer.testing import CliRunner

from ultracluster.cli import terminal
from ultracluster.cli.main import app

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def env(patch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"):
        patch.delenv(name, raising=False)
    for name, value in variables.items():
        patch.setenv(name, value)


@pytest.mark.parametrize(
    ("variables", "on_pipe", "on_screen"),
    [
        ({}, False, True),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, False, True),
        ({"NO_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_who_gets_colours(
    variables: dict[str, str], on_pipe: bool, on_screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    env(monkeypatch, **variables)

    assert terminal.coloured(io.StringIO()) is on_pipe
    assert terminal.coloured(Screen()) is on_screen


PRINTED = (
    ["plan", "dev"],
    ["cost", "dev"],
    ["choose", "--slurm"],
    ["diff", "--templates", "{old}", "{new}"],
    ["move", "prod", "--to", "use2-az1"],
)


@pytest.mark.parametrize("words", PRINTED, ids=lambda words: words[0])
def test_every_answer_obeys(words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    for side, size in (("old", 1), ("new", 2)):
        resource = f'{{"Type": "AWS::S3::Bucket", "Properties": {{"BucketName": "b{size}"}}}}'
        (tmp_path / f"{side}.template.json").write_text(f'{{"Resources": {{"Bucket": {resource}}}}}')
    files = {side: str(tmp_path / f"{side}.template.json") for side in ("old", "new")}
    line = [word.format(**files) for word in words]

    def piped(**variables: str) -> str:
        env(monkeypatch, **variables)
        return CliRunner().invoke(app, line).stdout

    plain = piped()
    assert not COLOURS.search(plain)
    assert not COLOURS.search(piped(NO_COLOR="1", FORCE_COLOR="1"))
    forced = piped(FORCE_COLOR="1", TERM="xterm-256color")
    assert [one.rstrip() for one in COLOURS.sub("", forced).splitlines()] == plain.splitlines()
    assert bool(COLOURS.search(forced)) == (words[0] != "move")
    assert not COLOURS.search(on_terminal(monkeypatch, *line, NO_COLOR="1").text)
    assert not COLOURS.search(on_terminal(monkeypatch, *line, TERM="dumb").text)


def test_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, wide in (("", 90), ("60", 60), ("0", 90), ("x", 90), ("-5", 90)):
        env(monkeypatch, COLUMNS=columns)
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        assert terminal.width(90) == wide


@pytest.mark.parametrize("columns", ["60", "80", "100", "160"])
def test_no_column_is_cut(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is too narrow, text goes on in the next line."""
    monkeypatch.chdir(ROOT)
    for words in PRINTED[:3]:
        shown = on_terminal(monkeypatch, *words, COLUMNS=columns)
        assert "…" not in shown.text, words


def test_quiet_stands_anywhere_and_ends_with_the_command(tmp_path: Path) -> None:
    what = [
        "--instance-type",
        "p5.48xlarge",
        "--nodes",
        "4",
        "--orchestrator",
        "eks",
    ]
    draft = ["init", *what, "--region", "us-east-2", "--yes", "-o"]
    for number, place in enumerate((0, 1, 5, len(draft) + 1)):
        for quiet in ("-q", "--quiet"):
            words = [*draft, str(tmp_path / f"{number}{quiet}.yaml")]
            words.insert(place, quiet)
            ended = CliRunner().invoke(app, words)
            assert (ended.exit_code, ended.stdout) == (0, ""), ended.output
            assert "is written" not in ended.stderr
    ended = CliRunner().invoke(app, [*draft, str(tmp_path / "loud.yaml")])
    assert "loud.yaml is written" in ended.stderr


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        (">&-", "plan dev", 0),
        (">&-", "rules FSX002", 0),
        ("2>&-", "vaildate", 2),
        ("<&-", "choose", 2),
        ("<&- >&- 2>&-", "plan dev", 0),
        ("<&- >&- 2>&-", "choose", 2),
    ],
)
def test_streams_that_are_closed_are_no_error(closed: str, words: str, code: int) -> None:
    """Each is closed where the command uses it: for an answer, an error or a question."""
    line = f"{sys.executable} -m ultracluster {words} {closed}"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_quiet_keeps_answers_and_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)

    def said(*words: str) -> Any:
        return CliRunner().invoke(app, list(words))

    for words in (
        ["cost", "dev"],
        ["rules"],
        ["doctor", "dev", "--reason", "Not responding"],
        ["plan", "nope"],
    ):
        loud, quiet = said(*words), said(*words, "-q")
        assert (loud.stdout, loud.stderr, loud.exit_code) == (quiet.stdout, quiet.stderr, quiet.exit_code)
    (tmp_path / "bad.yaml").write_text("name: Dev\n")
    assert "error" in said("validate", str(tmp_path / "bad.yaml"), "-q").stderr
    assert said("validate", "dev", "-q").output == ""
