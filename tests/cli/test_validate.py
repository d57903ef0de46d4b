"""`ultracluster validate` of many files: text, GitHub's annotations and SARIF."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft4Validator
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

SARIF = ROOT / "node_modules" / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
"""The official schema, as Microsoft's package for tests holds it."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with `dev`, and with `bad`, which breaks a rule, a key and a warning."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (tmp_path / "environments").mkdir()
    shipped = (ROOT / "environments" / "dev.yaml").read_text()
    (tmp_path / "environments" / "dev.yaml").write_text(shipped)
    bad = "extends: dev.yaml\nname: bad\nstorage:\n  lustre:\n    capacity_gib: 5000\nnetwrk: 1\n"
    (tmp_path / "environments" / "bad.yaml").write_text(bad)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["validate", *words])


@cache
def sarif_schema() -> Draft4Validator:
    schema = json.loads(SARIF.read_text())
    Draft4Validator.check_schema(schema)
    return Draft4Validator(schema)


def test_many_files_at_once_each_with_a_line(folder: Path) -> None:
    result = run("environments/bad.yaml", "dev", "environments/bad.yaml")

    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[-2:] == ["environments/bad.yaml: 2 errors, 0 warnings", "dev: 0 errors, 0 warnings"]
    assert result.stderr.count("capacity_gib: 5000") == 1
    assert run("dev", str(folder / "environments/dev.yaml")).exit_code == 0


def test_a_deployed_environment_is_offered_what_a_running_one_takes(folder: Path) -> None:
    shipped = (ROOT / "environments" / "eks-p5en.yaml").read_text()
    (folder / "environments" / "old.yaml").write_text(shipped.replace('"1.36"', '"1.33"'))
    new, running = run("old"), run("old", "--deployed")

    assert 'kubernetes_version: "1.36"' in new.stderr and "one release at a time" in new.stderr
    assert 'kubernetes_version: "1.34"' in running.stderr and 'version: "1.36"' not in running.stderr


def test_a_folder_is_its_files(folder: Path) -> None:
    files = sorted(str(file) for file in (folder / "environments").glob("*.yaml"))
    named = json.loads(run(*files, "--json").stdout)["environments"]
    found = json.loads(run(str(folder / "environments"), "--json").stdout)["environments"]

    assert len(found) > 1 and found == named


def test_other_commands_say_what_is_in_a_folder(folder: Path) -> None:
    result = CliRunner().invoke(app, ["plan", str(folder / "environments")])

    assert result.exit_code == 2
    assert "is a folder" in result.stderr and "dev.yaml" in result.stderr


def test_json_has_the_findings_of_each_environment(folder: Path) -> None:
    bad, dev, none = json.loads(run("bad", "dev", "nope", "--json").stdout)["environments"]

    assert (bad["environment"], bad["errors"], dev["errors"], none["errors"]) == ("bad", 2, 0, 1)
    assert {row["code"] for row in bad["findings"]} == {"CFG004", "FSX002"}
    assert none["findings"][0]["code"] == "CFG001"
    assert run("bad", "--format", "json").stdout == run("bad", "--json").stdout


def test_github_annotations_lie_on_the_lines(folder: Path) -> None:
    result = run("bad", "dev", "--format", "github")

    assert result.exit_code == 2
    found = [re.fullmatch(r"::(error|warning) ([^:]*)::(.*)", line) for line in result.stdout.splitlines()]
    assert len(found) == 2 and all(found)
    places = [dict(part.split("=", 1) for part in one[2].split(",")) for one in found if one]
    assert {(one["file"], one["line"], one["title"]) for one in places} == {
        ("environments/bad.yaml", "5", "FSX002 storage.lustre.capacity_gib"),
        ("environments/bad.yaml", "6", "CFG004 netwrk"),
    }
    assert "%0Ainstead: " in result.stdout
    assert result.stderr.splitlines() == ["bad: 2 errors, 0 warnings", "dev: 0 errors, 0 warnings"]


@pytest.mark.parametrize(
    ("text", "data", "value"),
    [
        ("100%", "100%25", "100%25"),
        ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
        ("a: b, c", "a: b, c", "a%3A b%2C c"),
        ("%0A", "%250A", "%250A"),
    ],
)
def test_github_takes_escapes(text: str, data: str, value: str) -> None:
    """As actions/toolkit escapes them in command.ts; a command ends with its line."""
    from ultracluster.cli.workflow_annotations import annotation_lines
    from ultracluster.config import Finding, Location

    finding = Finding(
        code="ENV001", severity="error", message=text, path=(text,), location=Location("a,b:c.yaml", 1, 2)
    )

    (line,) = annotation_lines([finding])

    assert line == f"::error file=a%2Cb%3Ac.yaml,line=1,col=2,endColumn=3,title=ENV001 {value}::{data}"


def test_paths_are_those_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
    monkeypatch.chdir(folder / "environments")

    assert "file=environments/bad.yaml," in run("bad.yaml", "--format", "github").stdout
    assert (
        "file=environments/bad.yaml,"
        in run(str(folder / "environments/bad.yaml"), "--format", "github").stdout
    )


def test_acknowledged_warnings_are_no_annotations_but_suppressions() -> None:
    prod = str(ROOT / "environments" / "prod.yaml")
    assert run(prod, "--format", "github").stdout == ""

    (made,) = json.loads(run(prod, "--format", "sarif").stdout)["runs"]
    assert {one["ruleId"] for one in made["results"]} == {"HPS068", "SOF004"}
    assert all(one["suppressions"][0]["justification"] for one in made["results"])


@pytest.mark.parametrize("names", [("bad", "dev"), ("dev",), ("nope",)])
def test_sarif_is_what_its_schema_says(names: tuple[str, ...], folder: Path) -> None:
    result = run(*names, "--format", "sarif")

    log = json.loads(result.stdout)
    sarif_schema().validate(log)
    assert result.stderr == ""
    assert result.exit_code == (0 if names == ("dev",) else 2)


def test_sarif_names_rule_place_and_remedy(folder: Path) -> None:
    (made,) = json.loads(run("bad", "--format", "sarif").stdout)["runs"]

    rules = made["tool"]["driver"]["rules"]
    found = {one["ruleId"]: one for one in made["results"]}
    place = found["FSX002"]["locations"][0]["physicalLocation"]
    assert rules[found["FSX002"]["ruleIndex"]]["id"] == "FSX002"
    assert rules[found["FSX002"]["ruleIndex"]]["shortDescription"]["text"]
    assert place["artifactLocation"]["uri"] == "environments/bad.yaml"
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (5, 19)
    assert "\nInstead: " in found["FSX002"]["message"]["text"]


def test_the_schema_of_sarif_can_refuse(folder: Path) -> None:
    log = json.loads(run("bad", "--format", "sarif").stdout)
    log["runs"][0]["results"][0]["level"] = "fatal"

    assert list(sarif_schema().iter_errors(log))


def test_what_two_files_extend_is_said_once(folder: Path) -> None:
    (folder / "environments" / "worse.yaml").write_text("extends: bad.yaml\n")
    result = run("bad", "worse", "--format", "github")

    assert result.stdout.count("FSX002") == 1


def test_two_formats_are_refused() -> None:
    result = run("dev", "--json", "--format", "sarif")

    assert result.exit_code == 2
    assert "--json and --format sarif exclude each other" in result.stderr
