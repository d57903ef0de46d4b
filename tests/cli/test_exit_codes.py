"""docs/exit-codes.md says how every command ends, and commands end so."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from command_tree import commands
from exit_runs import TABLE
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

PAGE = ROOT / "docs" / "exit-codes.md"
LOGS = ROOT / "tests" / "acceptance" / "logs"


@cache
def page() -> dict[str, dict[int, str]]:
    """What the page says of 1 and 3, by command."""
    rows = re.findall(r"^\| `([a-z -]+)` \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {
        command: {code: text for code, text in ((1, one), (3, three)) if text != "-"}
        for command, one, three in rows
    }


def test_every_command_has_a_row() -> None:
    assert {name for name, _ in commands()} <= page().keys()


@pytest.mark.parametrize("name", sorted(name for name, _ in commands()))
def test_what_help_says_of_exit_codes_is_on_the_page(name: str) -> None:
    command = dict(commands())[name]
    text = " ".join((command.help or "").split()).partition("xit code")[2]
    said = {int(code) for code in re.findall(r"(?<![\w.-])([13])(?= =|:| if| unless)", text)}

    assert said <= page()[name].keys(), f"{name}: its help says more than the page"


def template(folder: Path, name: str, **properties: object) -> str:
    resource = {"Type": "AWS::FSx::FileSystem", "Properties": {"FileSystemType": "LUSTRE", **properties}}
    file = folder / name
    file.write_text(json.dumps({"Resources": {"Files": resource}}))
    return str(file)


def test_codes_are_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that needs no account; with one, see tests/account."""
    monkeypatch.chdir(ROOT)
    old, same = template(tmp_path, "old.json"), template(tmp_path, "same.json")
    lost = template(tmp_path, "lost.json", SecurityGroupIds=["sg-1"])
    judge = ["acceptance", "--type", "p5en.48xlarge", "--nodes", "4"]
    release = json.loads((ROOT / "lifecycle_scripts" / "releases" / "2026.11.lock").read_text())
    release["components"]["fabric-manager"]["version"] = "580.0"
    (tmp_path / "2026.11.lock").write_text(json.dumps(release))
    for words, code in (
        (["validate", "dev"], 0),
        (["validate", "dev", "nope"], 2),
        (["plan", "dev"], 0),
        (["plan", "nope"], 2),
        (["cost", "dev"], 0),
        (["cost", "dev", "--strict", "--today", "2030-01-01"], 1),
        ([*judge, str(LOGS / "p5en-4-nodes.log")], 0),
        ([*judge, str(LOGS / "p5en-4-nodes-tcp-fallback.log")], 1),
        ([*judge, str(LOGS / "p5en-4-nodes-cut.log")], 3),
        ([*judge, "nowhere"], 2),
        (["diff", "--templates", old, same], 0),
        (["diff", "--templates", old, lost], 3),
        (["diff", "--templates", old, lost, "--accept-data-loss", "lost/Files"], 1),
        (["diff", "--templates", old, "nowhere"], 2),
        (["software", "show", "--check", "2026.11"], 0),
        (["software", "show", "--check", str(tmp_path / "2026.11.lock")], 2),
        (["rules", "NOPE1"], 2),
        (["schema", "nope"], 2),
        (["software", "show", "nope"], 2),
        (["nodes", "list"], 2),
        (["--version"], 0),
    ):
        for more in ([], ["--json"]) if words[0] not in ("schema", "--version") else ([],):
            result = CliRunner().invoke(app, [*words, *more])
            assert result.exit_code == code, f"{words} {more}: {result.output}"
            name = " ".join(words[:2]) if " ".join(words[:2]) in page() else words[0]
            assert code in (0, 2) or code in page()[name]


def test_each_code_of_the_page_is_held_to_a_run() -> None:
    """tests/support/exit_runs.py fails the test that no longer ends a command as the table says."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    proven = {f"{command}: {code}" for command, codes in table["proven"].items() for code in codes}
    on_page = {f"{command}: {code}" for command, codes in page().items() for code in codes}
    assert proven == on_page
    for test in (test for codes in table["proven"].values() for test in codes.values()):
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), test
