"""`ultracluster move` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app
from ultracluster.config import load


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["move", *words])


def test_the_plan_says_all_of_it() -> None:
    ended = run("prod", "--to", "use2-az1")
    assert ended.exit_code == 0
    for said in (
        "Carries over:", "Copied:", "Bought again:", "Made again:", "Cost:", "To fill in", "Order;",
        "[has to pass]", "back: ", "$ ultracluster deploy prod-use2-az1", "both for 3 days",
    ):  # fmt: skip
        assert said in ended.stdout
    assert all(
        len(line) <= 100 for line in ended.stdout.splitlines() if "$" not in line and "arn:" not in line
    )


def test_markdown_has_the_same_words() -> None:
    ended = run("prod", "--to", "us-west-2", "--markdown")
    assert ended.exit_code == 0 and ended.stdout.startswith("# prod from use2-az2 to ")
    assert "\n1. " in ended.stdout and "   - `ultracluster deploy prod-" in ended.stdout


def test_the_second_environment_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "new" / "second.yaml"
    ended = run("prod", "--to", "use2-az1", "--write", str(file), "--json")
    assert ended.exit_code == 0 and f"{file} is written" in ended.stderr
    assert json.loads(ended.stdout)["text"] == file.read_text()
    assert load(file).environment.name == "prod-use2-az1"
    again = run("prod", "--to", "use2-az1", "--write", str(file))
    assert again.exit_code == 2 and "exists" in again.stderr


def test_a_target_without_the_type_is_said_so() -> None:
    """The plan is printed all the same: AWS may have it since."""
    ended = run("pcs-p6-b200", "--to", "ca-west-1")
    assert ended.exit_code == 1
    assert "The target may not have it:" in ended.stdout and "p6-b200.48xlarge" in ended.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prod", "--to", "nowhere"], "neither a zone id nor a Region"),
        (["prod", "--to", "use2-az1", "--json", "--markdown"], "exclude each other"),
        (["prod", "--to", "use2-az1", "--name", "Prod_2"], "small letters"),
        (["nope", "--to", "use2-az1"], "nope"),
        (["prod", "--to", "capacity:nothing"], "names no capacity"),
    ],
)
def test_bad_input(words: list[str], says: str) -> None:
    ended = run(*words)
    assert ended.exit_code == 2 and says in ended.output and "Traceback" not in ended.output
