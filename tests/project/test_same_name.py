"""Two files with the same stacks: refused where they are checked together, and by `deploy`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app
from ultracluster.config import Environment, load
from ultracluster.project.same_name import shared_name


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
    assert bool(shared_name(prod, prod.model_copy(update=change))) is same


def environment(file: str, name: str, prefix: str | None = None, cluster: str | None = None) -> Environment:
    shipped = load(ROOT / f"environments/{file}.yaml").environment
    governance = shipped.governance.model_copy(update={"stack_prefix": prefix})
    orchestrator = shipped.orchestrator.model_copy(update={"cluster_name": cluster})
    more = {"governance": governance, "orchestrator": orchestrator, "region": "us-east-2", "account": None}
    return shipped.model_copy(update={"name": name, **more})


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (environment("prod", "dev", "team-"), environment("dev", "team-dev"), True),
        (environment("prod", "dev", "team-"), environment("dev", "other-dev"), False),
        (environment("prod", "a", None, "big"), environment("dev", "b", None, "big"), True),
        (environment("prod", "a", None, "big"), environment("eks-p5en", "b", None, "big"), False),
        # ParallelCluster's own stack is called like its cluster
        (environment("parallelcluster-p5", "p5-network"), environment("dev", "p5"), True),
        (environment("parallelcluster-p5", "p5-nets"), environment("dev", "p5"), False),
        (environment("prod", "p5-network"), environment("dev", "p5"), False),
    ],
)
def test_other_names_that_meet(one: Environment, other: Environment, shared: bool) -> None:
    assert bool(shared_name(one, other)) is bool(shared_name(other, one)) is shared


@pytest.mark.parametrize("place", ["environments/dev.yml", "dev.yaml", "elsewhere/dev.yaml"])
def test_a_twin_of_another_suffix_or_folder_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    _, two = project(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    two.rename(tmp_path / place)
    monkeypatch.chdir(tmp_path)
    for name in ("dev", place) if place.startswith("environments") else (place,):
        ended = CliRunner().invoke(app, ["deploy", name, "--yes"])
        assert ended.exit_code == 2 and "both are the same stacks" in ended.output, name
    if place.startswith("environments"):
        ended = CliRunner().invoke(app, ["validate", "environments"])
        assert ended.exit_code == 2 and "CPY000" in ended.output


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
