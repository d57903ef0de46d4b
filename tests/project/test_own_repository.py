"""A team's own repository, made and used with the wheel alone: no checkout, no network, no credentials."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from project import ROOT
from templates import synthesise
from wheel import node_of_tests, run_in

from ultracluster.config import Environment, load
from ultracluster.project.place import SCHEMA
from ultracluster.project.scaffold import FILES, TEMPLATES
from ultracluster.project.synth import METADATA

SYSTEM = "/usr/bin:/bin"
"""What of the machine's PATH is left: git, but none of this checkout's tools."""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def acme(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    made = run_in(site, folder, "ultracluster", "new", "acme", path=SYSTEM, check=True)
    assert "ultracluster synth dev" in made.stderr
    return folder / "acme"


@pytest.fixture(scope="module")
def run(site: Path, acme: Path) -> Run:
    def ran(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run_in(site, acme, *words, path=SYSTEM, check=check)

    return ran


def test_it_holds_what_it_says_and_nothing_is_left_to_replace(acme: Path) -> None:
    files = {file.relative_to(acme).as_posix() for file in acme.rglob("*") if file.is_file()}

    (wheel,) = (acme / "wheels").iterdir()
    drafts = {"environments/dev.yaml", "environments/prod.yaml"}
    assert files == {*FILES, *drafts, SCHEMA, f"wheels/{wheel.name}"}
    assert not [name for name in FILES if "@VERSION@" in (acme / name).read_text()]
    assert os.access(acme / "ci" / "report", os.X_OK)
    assert (acme / "app.py").read_text() == (ROOT / "app.py").read_text()
    assert {file.name for file in TEMPLATES.iterdir()} == {*FILES.values(), "dependencies.lock.txt"}


def test_its_requirements_can_be_installed_from_it(acme: Path) -> None:
    """It was made by a wheel that no index has, so it takes the wheel along."""
    text = (acme / "requirements.txt").read_text()

    (wheel,) = (acme / "wheels").iterdir()
    digest = sha256(wheel.read_bytes()).hexdigest()
    assert f"\n./wheels/{wheel.name} --hash=sha256:{digest}\n" in text
    assert "aws-cdk-lib==" in text and "@" not in text


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_its_environments_break_no_rule_and_name_their_schema(name: str, acme: Path, run: Run) -> None:
    run("ultracluster", "validate", f"environments/{name}.yaml")

    text = (acme / "environments" / f"{name}.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../environment.schema.json\n")
    assert ("\nprotect: true" in text) == (name == "prod")


def test_its_templates_are_those_of_the_checkout(acme: Path, run: Run, tmp_path: Path) -> None:
    """Byte by byte, with assets and manifest; the CDK's kernel runs on the Node.js of the extra `cli`."""
    made = run("ultracluster", "synth", "dev")
    assert "dev-storage" in made.stdout  # the plan

    ours = tmp_path / "ours"
    synthesise(environment_of(acme), ours, context=dict.fromkeys(METADATA.values(), True))
    names = sorted(one.relative_to(ours).as_posix() for one in ours.rglob("*") if one.is_file())
    assert len([name for name in names if name.endswith(".template.json")]) >= 6
    assert filecmp.cmpfiles(ours, acme / "cdk.out", names, shallow=False) == (names, [], [])


def test_the_generated_test_says_what_changed_and_own_stacks_stand_beside_ours(
    acme: Path, site: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "acme"
    shutil.copytree(acme, copy, ignore=shutil.ignore_patterns("cdk.out"))
    page = (ROOT / "docs" / "own-repository.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    own = block.replace("from ultracluster.app import Beside", "from ultracluster.app import Beside, main")
    stack = 'cdk.Stack(app, f"{environment.name}-dashboards")'
    assert stack in own  # CloudFormation refuses one that has nothing in it
    own = own.replace(stack, f'cdk.CfnWaitConditionHandle({stack}, "Any")')
    (copy / "app.py").write_text(f"import sys\n{own}\nsys.exit(main(__file__, beside=beside))\n")
    judge = ("python", "-m", "pytest", "-q", "-k", "dev")

    first = run_in(site, copy, *judge, path=SYSTEM, check=False, **node_of_tests())
    assert first.returncode == 1
    assert "`pytest --update-snapshots` writes them to snapshots/dev/" in first.stdout

    reviewed = copy / "snapshots" / "dev"
    reviewed.mkdir(parents=True)
    for file in synthesise(environment_of(acme), tmp_path / "ours", validate=False, nag=False).files:
        text = file.read_text(encoding="utf-8")
        if file.name == "dev-storage.template.json":
            text = text.replace('"PERSISTENT_2"', '"PERSISTENT_1"')
        (reviewed / file.name).write_text(text, encoding="utf-8")
    second = run_in(site, copy, *judge, path=SYSTEM, check=False, **node_of_tests())
    assert second.returncode == 1
    changed = "dev-dashboards.template.json, dev-storage.template.json"
    assert f"dev is not as reviewed: {changed}\n" in second.stdout
    assert "DATA LOSS" in second.stdout
    assert "1 passed" in second.stdout and "Traceback" not in second.stdout


def test_a_broken_rule_is_a_failed_test_without_a_traceback(acme: Path, site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "acme"
    shutil.copytree(acme, copy)
    (copy / "environments" / "prod.yaml").unlink()
    file = copy / "environments" / "dev.yaml"
    file.write_text(file.read_text().replace("capacity_gib: 9600", "capacity_gib: 5000"))

    found = run_in(site, copy, "python", "-m", "pytest", "-q", "-k", "rule", path=SYSTEM)

    assert found.returncode == 1
    assert "FSX011" in found.stdout and "Traceback" not in found.stdout


def environment_of(acme: Path) -> Environment:
    return load(acme / "environments" / "dev.yaml").environment
