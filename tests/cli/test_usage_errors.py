"""A mistyped command line: what is wrong, the nearest that works, exit code 2, as JSON, too."""

from __future__ import annotations

import json

import pytest
from command_tree import commands, option_names
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli import init
from ultracluster.cli.main import app
from ultracluster.cli.renamed import RENAMED, TRIED

KINDS = "hyperpod-slurm, hyperpod-eks, parallelcluster, pcs, eks"
WRONG: list[tuple[str, str]] = [
    ("vaildate dev", "there is no command `vaildate`: validate"),
    ("pln dev", "there is no command `pln`: plan"),
    ("nodes lst dev", "there is no command `nodes lst`: nodes list"),
    ("node list dev", "there is no command `node`: nodes"),
    ("reboot dev", "there is no command `reboot`: nodes reboot"),
    ("mirror", "there is no command `mirror`: software mirror"),
    ("zzzz", "there is no command `zzzz`: `ultracluster --help` lists them"),
    ("nodes zzzz", "there is no command `nodes zzzz`: `ultracluster nodes --help` lists them"),
    ("capacity list", "there is no command `capacity list`: capacity buy or capacity search"),
    ("job reboot dev", "there is no command `job reboot`: nodes reboot"),
    ("job zzzz dev", "there is no command `job zzzz`: `ultracluster job --help` lists them"),
    ("validate dev --jsn", "`ultracluster validate` has no option --jsn: --json"),
    ("nodes list dev --grup x", "`ultracluster nodes list` has no option --grup: --group"),
    ("nodes list dev --group-nam x", "`ultracluster nodes list` has no option --group-nam: --group"),
    (
        "job write dev --program x.py",
        "`ultracluster job write` has no option --program: use it with job submit",
    ),
    (
        "job list dev --dry-run",
        "`ultracluster job list` has no option --dry-run: use it with job submit or job shell",
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
    ("ssh dev i-1", "there is no command `ssh`: connect dev i-1"),
    ("ls", "there is no command `ls`: list or nodes list or job list"),
    ("stop dev", "there is no command `stop`: job cancel or nodes delete or destroy"),
    ("init --gpus 64xH100", "`ultracluster init` has no option --gpus: --accelerators"),
    ("choose --accelerators 64xH100", "`ultracluster choose` has no option --accelerators: --instance-type"),
    ("plan", "the argument ENVIRONMENT is missing"),
    ("validate", "the argument ENVIRONMENT is missing"),
    ("nodes add dev", "the option --group is missing"),
    ("plan dev prod", "too many arguments: prod"),
    (
        "software recipe --release 2026.11 --orchestrator hyperpod-slrm",
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
    if "software recipe" in line:  # which has no --json
        said = "`ultracluster software recipe` has no option --json: use it with "
        said += "software show or software update"
    assert document["message"] == (f"{said} --json" if line.startswith("ssh") else said)


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


TREE = [name for name, _ in commands()]


@pytest.mark.parametrize("former", sorted(RENAMED))
def test_a_former_name_answers_with_the_new_command_line(former: str) -> None:
    words = [*former.split(), "dev", "first", "--option", "x"]
    ended = CliRunner().invoke(app, words)
    line = ended.stderr.splitlines()[0]
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert line.startswith(f"`ultracluster {former} dev first --option x` has a new name: ultracluster ")
    new = line.partition(": ultracluster ")[2]
    name = next(one for size in (2, 1) if (one := " ".join(new.split()[:size])) in TREE)
    assert {word for word in new.split() if word.startswith("--")} - {"--option"} <= option_names(
        dict(commands())[name]
    )
    assert {"dev", "first", "--option", "x"} <= set(new.split())
    assert former not in TREE


def test_words_that_people_try_first_name_commands() -> None:
    named = {command for commands_ in TRIED.values() for command in commands_}
    assert named <= set(TREE) and not TRIED.keys() & set(TREE)
    assert len(TREE) <= 55, "merge commands before you add one"


def test_a_flag_shows_no_type() -> None:
    for words in (["nodes", "reboot", "--help"], ["--help"]):
        assert "<bool>" not in CliRunner().invoke(app, words).stdout


def test_rules_are_found_by_a_word() -> None:
    found = CliRunner().invoke(app, ["rules", "--search", "LUSTRE"]).stdout.splitlines()
    assert len(found) > 20 and all("lustre" in line.lower() for line in found[1:])
    assert CliRunner().invoke(app, ["rules", "--search", "xyzzy"]).exit_code == 2
    near = CliRunner().invoke(app, ["rules", "lustre"])
    assert near.exit_code == 2 and "`ultracluster rules --search lustre`" in near.stderr
