"""What the command does as a whole: its version, completion in shells, and names of options."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import ultracluster
from command_tree import commands
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.environments import complete_environment
from ultracluster.cli.main import app
from ultracluster.version import __version__


def test_version_has_one_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    result = CliRunner().invoke(app, ["--version"])

    assert (result.exit_code, result.stdout) == (0, f"ultracluster {__version__}\n")
    assert "version" in project["project"]["dynamic"] and "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "constructs/ultracluster/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)


def test_metadata_claims_nothing_that_the_owner_has_not_said() -> None:
    from trove_classifiers import classifiers

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert not {"license", "license-files", "authors", "maintainers", "urls"} & project.keys()
    private = "Private :: Do Not Upload"
    assert private in project["classifiers"], "only a distribution with a licence may be uploaded"
    assert set(project["classifiers"]) - {private} <= set(classifiers)


SHELLS = {
    "bash": {"COMP_WORDS": "ultracluster {}", "COMP_CWORD": "{}"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "ultracluster {}"},
    "fish": {"_TYPER_COMPLETE_ARGS": "ultracluster {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


def completed(shell: str, words: str, folder: Path = ROOT) -> str:
    """What the shell is offered for the last of the words."""
    variables = {
        name: value.format(words if "ultracluster" in value else len(words.split(" ")))
        for name, value in SHELLS[shell].items()
    }
    done = ultracluster(cwd=folder, _ULTRACLUSTER_COMPLETE=f"complete_{shell}", **variables)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete_commands_options_and_environments(shell: str) -> None:
    assert "nodes" in completed(shell, "no")
    assert "health-check" in completed(shell, "nodes he")
    assert "--accept-data-loss" in completed(shell, "diff --acc")
    assert "prod" in completed(shell, "plan pr")
    assert "prod" in completed(shell, "validate dev pr")
    assert "prod" in completed(shell, "diff pr")
    assert "preflight" in completed(shell, "schema pre")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_printed_for_a_shell(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = ultracluster("--show-completion", shell)

    assert done.returncode == 0
    assert "_ULTRACLUSTER_COMPLETE" in done.stdout


def test_files_and_folders_are_offered_for_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for name in ("environments/dev.yaml", "environments/dev.lock", "elsewhere/one.yml", "e.yaml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    assert complete_environment("") == ["dev", "e.yaml", "elsewhere/", "environments/"]
    assert complete_environment("el") == ["elsewhere/"]
    assert complete_environment("elsewhere/") == ["elsewhere/one.yml"]
    assert complete_environment(f"{tmp_path}/e.") == [f"{tmp_path}/e.yaml"]
    assert complete_environment("nowhere/x") == []


def test_the_contract_costs_other_commands_nothing() -> None:
    """What describes documents, and what asks AWS, is imported by those who use it."""
    code = (
        "import sys; sys.argv = ['ultracluster', 'rules', '--next', 'FSX']\n"
        "from ultracluster.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('jsonschema', 'boto3')\n"
        "       or name.startswith('ultracluster.cli.documents.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


NAMES = {
    "as_json": ["--json"],
    "markdown": ["--markdown"],
    "quiet": ["--quiet", "-q"],
    "yes": ["--yes", "-y"],
    "dry_run": ["--dry-run"],
    "profile": ["--profile"],
    "strict": ["--strict"],
    "output": ["-o", "--output"],
    "force": ["--force"],
}


def test_options_have_the_same_names_in_every_command() -> None:
    for name, command in commands():
        options = {one.name: sorted(one.opts) for one in command.params if one.param_type_name == "option"}
        for parameter, names in NAMES.items():
            assert options.get(parameter, sorted(names)) == sorted(names), f"{name} --{parameter}"
        for parameter, opts in options.items():
            for known, names in NAMES.items():
                assert parameter == known or not set(opts) & set(names), (
                    f"{name}: {opts} is {known} elsewhere"
                )
        assert "--format" not in options.get("form", []) or name in ("validate", "software recipe"), name
