"""A mistyped command line: what is wrong, the nearest that works, exit code 2, as JSON, too."""

from __future__ import annotations

import json

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli import init
from ultracluster.cli.main import app

KINDS = "hyperpod-slurm, hyperpod-eks, parallelcluster, pcs, eks"
WRONG: list[tuple[str, str]] = [
    ("vaildate dev", "there is no command `vaildate`: validate"),
    ("pln dev", "there is no command `pln`: plan"),
    ("nodes lst dev", "there is no command `nodes lst`: nodes list"),
    ("node list dev", "there is no command `node`: nodes"),
    ("reboot dev", "there is no command `reboot`: nodes reboot"),
    ("mirror", "there is no command `mirror`: release mirror"),
    ("zzzz", "there is no command `zzzz`: `ultracluster --help` lists them"),
    ("nodes zzzz", "there is no command `nodes zzzz`: `ultracluster nodes --help` lists them"),
    ("capacity list", "there is no command `capacity list`: capacity buy or capacity search"),
    ("job reboot dev", "there is no command `job reboot`: nodes reboot"),
    ("job zzzz dev", "there is no command `job zzzz`: `ultracluster job --help` lists them"),
    ("validate dev --jsn", "`ultracluster validate` has no option --jsn: --json"),
    ("nodes list dev --grup x", "`ultracluster nodes list` has no option --grup: --group"),
    ("nodes list dev --group-nam x", "`ultracluster nodes list` has no option --group-nam: --group"),
    (
        "job pytorch dev --program x.py",
        "`ultracluster job pytorch` has no option --program: use it with job submit",
    ),
    ("job jax dev --program x.py", "`ultracluster job jax` has no option --program: use it with job submit"),
    (
        "job list dev --dry-run",
        "`ultracluster job list` has no option --dry-run: use it with "
        + " or ".join(("job notebook", "job shell", "job submit")),
    ),
    (
        "job logs dev 7 --nodes 2",
        "`ultracluster job logs` has no option --nodes: `ultracluster job logs --help` lists them",
    ),
    (
        "plan dev --priory",
        "`ultracluster plan` has no option --priory: `ultracluster plan --help` lists them",
    ),
    ("plan dev --zzzz", "`ultracluster plan` has no option --zzzz: `ultracluster plan --help` lists them"),
    ("plan dev -z", "`ultracluster plan` has no option -z: `ultracluster plan --help` lists them"),
    ("--zzzz", "`ultracluster` has no option --zzzz: `ultracluster --help` lists them"),
    ("plan", "the argument ENVIRONMENT is missing"),
    ("validate", "the argument ENVIRONMENT is missing"),
    ("nodes add dev", "the option --group is missing"),
    ("plan dev prod", "too many arguments: prod"),
    (
        "image recipe --release 2026.11 --orchestrator hyperpod-slrm",
        f"--orchestrator hyperpod-slrm: write hyperpod-slurm; there is {KINDS}",
    ),
    ("validate dev --format zzz", "--format zzz: write one of text, json, github, sarif"),
    (
        "validate dev --format gitlab",
        "--format gitlab: write github; there is text, json, github, sarif",
    ),
    (
        "nodes reboot dev i-1 --at-most x",
        "--at-most: it should be a valid integer, unable to parse string as an integer",
    ),
    ("nodes reboot dev i-1 --at-most 0", "--at-most: it should be greater than or equal to 1"),
    ("plan dev --model", "--model: a value is missing"),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_what_is_said(line: str, said: str) -> None:
    ended = CliRunner().invoke(app, line.split())

    assert ended.exit_code == 2
    assert ended.stderr.splitlines()[0] == said
    assert ended.stdout == ""
    told = ended.stderr.splitlines()[1:]
    knows_command = "lists them" not in said and not said.startswith("--model")
    assert len(told) == knows_command, told
    assert all(one.startswith("usage: ultracluster ") for one in told)


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_what_is_said_as_json(line: str, said: str) -> None:
    ended = CliRunner().invoke(app, ["--no-pager", *line.split(), "--json"])

    if line.endswith("--model"):  # takes --json as its value, as it is written
        return
    assert ended.exit_code == 2
    document = json.loads(ended.stdout)
    assert document["schema"] == "ultracluster.error/1"
    if "image recipe" in line:  # which has no --json
        said = "`ultracluster image recipe` has no option --json: use it with image list or image show"
    assert document["message"] == said


def test_quiet_keeps_the_error_and_drops_the_usage() -> None:
    ended = CliRunner().invoke(app, ["plan", "dev", "prod", "--quiet"])

    assert ended.stderr == "too many arguments: prod\n"


@pytest.mark.parametrize("text", ["\x1b[2Jx", "a\nvalidate: 0 errors", "x" * 3000, "::error::x", "\u202egnp"])
def test_what_is_mistyped_gives_no_orders(text: str) -> None:
    for words in (
        [text],
        ["nodes", text],
        ["plan", "dev", f"--{text}"],
        ["validate", "dev", "--format", text],
    ):
        ended = CliRunner().invoke(app, words)
        assert ended.exit_code == 2
        assert not any(one in ended.stderr for one in ("\x1b", "\u202e"))
        assert len(ended.stderr.splitlines()) <= 2


def test_an_environment_that_is_nearly_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    ended = CliRunner().invoke(app, ["plan", "pord"])

    assert ended.exit_code == 2
    assert "instead: environments/prod.yaml; environments/ has dev.yaml" in ended.stderr


def test_help_of_a_group_is_no_error() -> None:
    ended = CliRunner().invoke(app, ["nodes"])

    assert ended.exit_code == 2
    assert "Usage:" in ended.output
    assert "there is no" not in ended.output


def test_an_end_of_input_at_a_question_is_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(init, "can_ask", lambda: True)
    words = ["init", "--accelerators", "64xH100", "--orchestrator", "pcs", "--region", "us-east-1"]
    result = CliRunner().invoke(app, words, input="")
    assert result.exit_code == 1 and result.stderr.endswith("Aborted: no answer came.\n")
    assert "x1b" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        "validate {0}", "plan {0}", "import {0}", "move prod --to {0}", "plan prod --html {0}.html",
        "capacity search --everywhere --accelerators 64xH100 --write {0}.yaml",
        "import README.md --to {0}.yaml", "job submit dev --program {0} -",
    ],
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_refused(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, words.format("x" * 5000).split(), input="#!/bin/bash\n")
    assert (result.exit_code, result.stdout) == (2, "") and "Traceback" not in result.stderr
