"""Two files with the same stacks: refused where they are checked together, and by `deploy`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.project.same_name import share_stacks


def project(folder: Path) -> tuple[Path, Path]:
    """A project with dev.yaml and a copy of it."""
    (folder / "environments").mkdir()
    for name in ("app.py", "cdk.json"):
        shutil.copy(ROOT / name, folder / name)
    one, two = folder / "environments/dev.yaml", folder / "environments/other.yaml"
    for file in (one, two):
        shutil.copy(ROOT / "environments/dev.yaml", file)
    return one, two


def test_files_of_one_name_are_refused_together_and_allowed_alone(tmp_path: Path) -> None:
    one, two = project(tmp_path)
    both = CliRunner().invoke(app, ["validate", str(tmp_path / "environments")])
    assert both.exit_code == 2
    assert "other.yaml:" in both.output and "error CPY000 name" in both.output
    assert "dev.yaml is `dev`, too" in both.output
    for file in (one, two):
        assert "CPY000" not in CliRunner().invoke(app, ["validate", str(file)]).output
    twice = CliRunner().invoke(
        app, ["validate", str(one), str(tmp_path / "environments/../environments/dev.yaml")]
    )
    assert "CPY000" not in twice.output


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"name": "other"}, False),
        ({"account": "444455556666"}, False),
        ({"account": None}, True),
        ({"region": "us-gov-west-1"}, False),
    ],
)
def test_which_stacks_are_the_same(change: dict[str, str | None], same: bool) -> None:
    """An account that a file does not name may be the other's."""
    prod = load(ROOT / "environments/prod.yaml").environment
    assert prod.account
    assert share_stacks(prod, prod.model_copy(update=change)) is same


def test_deploy_refuses_the_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["deploy", "other", "--yes"])
    assert ended.exit_code == 2 and "both are the same stacks" in ended.output


def test_init_names_the_environment_after_its_file(tmp_path: Path) -> None:
    words = ["init", "--accelerators", "16xH100", "--orchestrator", "pcs", "--region", "us-east-1", "--yes"]
    for stem, name in [("research", "research"), ("A_1", "train")]:
        ended = CliRunner().invoke(app, [*words, "-o", str(tmp_path / f"{stem}.yaml")])
        assert ended.exit_code == 0, ended.output
        assert load(tmp_path / f"{stem}.yaml").environment.name == name
