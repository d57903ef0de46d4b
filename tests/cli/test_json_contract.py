"""What `--json` prints is a contract: every command over the shipped environments, by its schema."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from command_tree import commands, option_names
from json_contract import check_document
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner, Result

from tools import json_schemas
from ultracluster.cli.documents import DOCUMENTS, schema_file, schema_id
from ultracluster.cli.json_output import ask_json
from ultracluster.cli.main import app

LOGS = ROOT / "tests" / "acceptance" / "logs"
WITHOUT_ACCOUNT = {
    "acceptance": [["acceptance", str(LOGS), "--type", "p5.48xlarge"]],
    "choose": [["choose", "--slurm", "--instance-type", "p5.48xlarge"]],
    "cost": [["cost", "{}"], ["cost", "{}", "--days", "30"]],
    "job submit": [["job", "submit", "dev", "--nodes", "2", "--dry-run"]],
    "move": [["move", "prod", "--to", "use2-az1"], ["move", "dev", "--to", "us-east-1"]],
    "permissions": [["permissions"], ["permissions", "read"]],
    "plan": [["plan", "{}"], ["plan", "{}", "--model", "70B"]],
    "rules": [["rules"], ["rules", "FSX002"]],
    "software show": [
        ["software", "show"],
        ["software", "show", "2026.11"],
        ["software", "show", "hyperpod-slurm-2026.09"],
        ["software", "show", "--check", "2026.11"],
        ["software", "show", "--images"],
        ["software", "show", "eks-al2023-nvidia-1.34-x86_64-20261012"],
    ],
    "users": [["users", "dev"], ["users", "pcs-p6-b200"]],
    "validate": [["validate", "{}"], ["validate", "{}", "nope"]],
}
"""`{}` is each shipped environment."""
ELSEWHERE = {
    "apply": "tests/account/test_observability_apply.py",
    "capacity buy": "tests/capacity/test_buying.py",
    "capacity search": "tests/capacity/test_search.py",
    "connect": "tests/account/test_connect.py",
    "diff": "tests/cli/test_diff.py",
    "doctor": "tests/account/test_doctor.py",
    "import": "tests/cli/test_import_.py",
    "job list": "tests/cli/test_job_queue.py",
    "job why": "tests/jobs/placement/test_seats.py",
    "list": "tests/cli/test_status.py",
    "nodes add": "tests/account/nodes",
    "nodes delete": "tests/account/nodes",
    "nodes health-check": "tests/account/nodes",
    "nodes list": "tests/account/nodes",
    "nodes reboot": "tests/account/nodes",
    "nodes replace": "tests/account/nodes",
    "preflight": "tests/account/test_preflight.py",
    "software update": "tests/account/test_software_update.py",
    "status": "tests/cli/test_status.py",
    "wait": "tests/cli/test_wait.py",
}
"""Where commands print JSON over fake accounts and templates; there, too, every document is checked."""


def test_every_command_with_json_has_a_document_and_is_run() -> None:
    found = {name for name, command in commands() if "--json" in option_names(command)}

    assert found == {one for row in DOCUMENTS.values() for one in row.commands}
    assert found == WITHOUT_ACCOUNT.keys() | ELSEWHERE.keys()
    for name, place in ELSEWHERE.items():
        files = [ROOT / place] if place.endswith(".py") else (ROOT / place).glob("test_*.py")
        assert any("--json" in file.read_text() for file in files), f"{place} prints no JSON of {name}"


def test_every_json_option_is_the_shared_one() -> None:
    """Otherwise a refusal would not be JSON."""
    for name, command in commands():
        for one in command.params:
            if "--json" in one.opts:
                assert ask_json.__name__ in _inner(one.callback), name


@pytest.mark.parametrize("command", WITHOUT_ACCOUNT)
def test_json_of_every_command_over_every_environment(
    command: str, monkeypatch: pytest.MonkeyPatch, json_keeps_its_schema: list[str]
) -> None:
    monkeypatch.chdir(ROOT)
    names = {schema_id(name) for name, row in DOCUMENTS.items() if command in row.commands}
    for words in WITHOUT_ACCOUNT[command]:
        for environment in ENVIRONMENTS if "{}" in words else [""]:
            result = run(*(environment if word == "{}" else word for word in words), "--json")
            assert check_document(result.stdout)["schema"] in names, result.stderr
    assert json_keeps_its_schema


def test_schemas_are_those_of_the_types() -> None:
    assert {
        str(path.relative_to(ROOT)): path.read_text() == text for path, text in json_schemas.written().items()
    } == dict.fromkeys((str(path.relative_to(ROOT)) for path in json_schemas.written()), True), (
        "make generate"
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_key_is_removed_or_renamed_without_a_new_number(name: str) -> None:
    pinned: dict[str, list[str]] = json.loads(json_schemas.PINS.read_text())
    keys = json_schemas.key_paths(json.loads(schema_file(name).read_text()))

    gone = [key for key in pinned[schema_id(name)] if key not in keys]

    assert not gone, f"raise the number of {name} in cli/documents, and say it in the changelog"


def test_a_renamed_key_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pin gives nothing away when it is written again, and a new number starts a new one."""
    pins = tmp_path / "keys.json"
    pins.write_text(json.dumps({"ultracluster.connect/1": ["old_name: string"]}))
    monkeypatch.setattr(json_schemas, "PINS", pins)
    kept = json_schemas.pins()["ultracluster.connect/1"]
    assert {"old_name: string", "target: string"} <= set(kept)

    monkeypatch.setitem(DOCUMENTS, "connect", DOCUMENTS["connect"]._replace(number=2))
    assert "old_name: string" not in json_schemas.pins()["ultracluster.connect/2"]


def test_schema_prints_what_is_published() -> None:
    for name in DOCUMENTS:
        assert run("schema", name).stdout == schema_file(name).read_text()
    assert run("schema", "ultracluster.plan/1").stdout == schema_file("plan").read_text()
    assert "properties" in json.loads(run("schema").stdout)

    refused, newer = run("schema", "plann"), run("schema", "ultracluster.plan/9")
    assert (refused.exit_code, "there is no document plann: plan" in refused.stderr) == (2, True)
    assert (newer.exit_code, "this version prints ultracluster.plan/1" in newer.stderr) == (2, True)


REFUSED = {
    "an unknown environment": ["plan", "nope"],
    "an unknown option": ["plan", "dev", "--nope"],
    "an unknown command": ["nodes", "vanish"],
    "no argument": ["cost"],
    "two formats": ["plan", "dev", "--markdown"],
    "an unknown release": ["software", "show", "1.1"],
    "an unknown image": ["software", "show", "nope"],
    "unreadable logs": ["acceptance", "nope", "--type", "p5.48xlarge"],
    "a wrong value": ["cost", "dev", "--days", "0"],
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_json_with_the_same_exit_code(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = REFUSED[case]

    with_json, without = run(*words, "--json"), run(*words)

    document = check_document(with_json.stdout)
    assert document["schema"] == "ultracluster.error/1"
    assert document["message"]
    assert with_json.stderr.split() == without.stderr.split() or case in ("two formats", "an unknown command")
    assert with_json.exit_code == document["exit_code"] == 2
    assert without.stdout == "" or case == "two formats"


def test_a_refusal_has_the_findings_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    copyfile(ROOT / "environments" / "dev.yaml", tmp_path / "dev.yaml")
    file.write_text("extends: dev.yaml\nnetwork:\n  zone_id: use1-az1\n")

    document = check_document(run("plan", str(file), "--json").stdout)

    assert [row["code"] for row in document["findings"]] == ["ENV003"]
    assert document["findings"][0]["file"] == str(file)


def test_a_refusal_stays_within_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run("plan", "nope", "--json")

    assert run("plan", "nope").stdout == ""


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def _inner(callback: Any) -> str:
    """Typer wraps a callback; what it wraps is in the closure."""
    return repr([cell.cell_contents for cell in callback.__closure__ or ()])
