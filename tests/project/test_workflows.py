"""Workflows of a team's repository, by the schemas of GitHub's and GitLab's editors and by our rules."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from check_jsonschema import main
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from ultracluster.project.scaffold import Source, texts

pytestmark = pytest.mark.slow  # pins of the CDK are read from its installation
GITHUB = ".github/workflows/environments.yml"
GITLAB = ".gitlab-ci.yml"
REPORT = "ci/report"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return texts("acme", "us-east-2", {"dev": "", "prod": ""}, Source("ultracluster[cli]==0.1.0"))


def valid(text: str, schema: str, folder: Path) -> Result:
    file = folder / "workflow.yml"
    file.write_text(text)
    return CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", str(file)])


@pytest.mark.parametrize(("name", "schema"), [(GITHUB, "github-workflows"), (GITLAB, "gitlab-ci")])
def test_their_schemas_accept_them(name: str, schema: str, files: dict[str, str], tmp_path: Path) -> None:
    found = valid(files[name], schema, tmp_path)

    assert found.exit_code == 0, found.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "schema", "good", "bad"),
    [
        (GITHUB, "github-workflows", "runs-on:", "run-on:"),
        (GITHUB, "github-workflows", "contents: read", "contents: reads"),
        (GITLAB, "gitlab-ci", "when: manual", "when: sometimes"),
    ],
)
def test_a_mistake_in_them_is_found(
    name: str, schema: str, good: str, bad: str, files: dict[str, str], tmp_path: Path
) -> None:
    assert good in files[name]
    assert valid(files[name].replace(good, bad), schema, tmp_path).exit_code == 1


def loaded(text: str) -> dict[str, Any]:
    return YAML(typ="safe").load(text)  # pyright: ignore[reportUnknownMemberType]


def test_each_job_has_the_least_rights(files: dict[str, str]) -> None:
    workflow = loaded(files[GITHUB])
    rights = {name: job.get("permissions", workflow["permissions"]) for name, job in workflow["jobs"].items()}

    assert rights == {
        "check": {"contents": "read"},
        "report": {"contents": "read", "pull-requests": "write"},
        "preflight": {"contents": "read", "id-token": "write"},
        "deploy": {"contents": "read", "id-token": "write"},
    }
    assert "pull_request_target" not in files[GITHUB]


def test_actions_are_pinned_by_a_commit_and_a_deploy_is_approved(files: dict[str, str]) -> None:
    uses = re.findall(r"uses: (\S+)(.*)", files[GITHUB])

    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) and re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    deploy = loaded(files[GITHUB])["jobs"]["deploy"]
    assert deploy["environment"] == "${{ inputs.environment }}"
    assert deploy["if"] == "github.event_name == 'workflow_dispatch'"
    theirs = loaded(files[GITLAB])["deploy"]
    assert theirs["environment"]["name"] == "$ENVIRONMENT" and theirs["rules"][0]["when"] == "manual"


def test_no_step_puts_what_people_type_into_a_script(files: dict[str, str]) -> None:
    """`${{ }}` in a script is replaced before the shell reads it: a value could be a command."""
    jobs = loaded(files[GITHUB])["jobs"].values()

    assert not [step["run"] for job in jobs for step in job["steps"] if "${{" in step.get("run", "")]


@pytest.mark.slow
def test_scripts_are_clean_shell(files: dict[str, str], tmp_path: Path) -> None:
    jobs = {**loaded(files[GITHUB])["jobs"]}
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    gitlab = loaded(files[GITLAB])
    lines = ["\n".join(job["script"]) for job in gitlab.values() if isinstance(job, dict) and "script" in job]
    for number, script in enumerate([*scripts, *lines]):
        (tmp_path / f"{number}.sh").write_text(f"#!/usr/bin/env bash\n{script}\n")
    (tmp_path / "report").write_text(files[REPORT])

    every = sorted(str(file) for file in tmp_path.iterdir())
    found = subprocess.run(["shellcheck", *every], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    shape = ["shfmt", "-d", "-i", "2", "-ci", str(tmp_path / "report")]
    assert subprocess.run(shape, capture_output=True, text=True, check=False).stdout == ""


PROGRAM = """#!/bin/bash
echo "$*"
[[ $1 != diff ]] || exit "$STATUS"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 0), (3, 0), (2, 2)])
def test_the_report_ends_where_nothing_could_be_said(
    status: int, code: int, files: dict[str, str], tmp_path: Path
) -> None:
    for name in ("ci", "environments", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / REPORT).write_text(files[REPORT])
    (tmp_path / "bin" / "ultracluster").write_text(PROGRAM)
    (tmp_path / "bin" / "ultracluster").chmod(0o755)
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    (tmp_path / "environments" / "dev.yaml").touch()
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "environments" / "new.yaml").touch()

    variables = os.environ | {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "STATUS": str(status),
    }
    command = ["bash", str(tmp_path / REPORT), "HEAD"]
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert found.returncode == code, found.stderr
    assert "# dev\n\ndiff dev --against HEAD --markdown\n" in found.stdout
    if code == 0:
        assert "plan dev --markdown\n\ncost dev --markdown\n" in found.stdout
        assert "# new\n\nNew in this change.\n" in found.stdout
