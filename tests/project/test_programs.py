"""Which Node.js and which CDK command are run, and what is said where there is none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from project import ROOT

from ultracluster import nodejs
from ultracluster.nodejs import NoNodeError, npx, with_node
from ultracluster.project.cdk_command import cdk_command, pinned_cdk
from ultracluster.project.place import ProjectError


def program(file: Path, prints: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho {prints}\n")
    file.chmod(0o755)
    return file


def cdk(folder: Path, version: str) -> Path:
    """An npm package of that version, with its link in .bin."""
    package = folder / "node_modules" / "aws-cdk"
    made = program(package / "bin" / "cdk")
    (package / "package.json").write_text(json.dumps({"name": "aws-cdk", "version": version}))
    link = folder / "node_modules" / ".bin" / "cdk"
    link.parent.mkdir()
    link.symlink_to(made)
    return link


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "brought", "taken"),
    [
        ("v24.1.0", True, "own"),
        ("v22.9.0", False, "own"),
        ("v20.18.0", True, "wheel"),
        ("v20.18.0", False, "own"),  # the CDK says itself that it does not know it
        ("v25.0.0", True, "wheel"),
        ("nonsense", True, "wheel"),
        (None, True, "wheel"),
        (None, False, None),
    ],
)
def test_which_node(
    own: str | None, brought: bool, taken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = program(tmp_path / "wheel" / "bin" / "node")
    monkeypatch.setattr(nodejs, "_brought", lambda: str(wheels) if brought else None)
    if own:
        program(tmp_path / "own" / "node", own)
    variables = {"PATH": str(tmp_path / "own"), "HOME": "/"}
    if taken is None:
        with pytest.raises(NoNodeError, match=r"pip install 'ultracluster\[cli\]'"):
            with_node(variables)
        return
    found = with_node(variables)
    expected = wheels if taken == "wheel" else tmp_path / "own" / "node"
    assert found["JSII_NODE"] == str(expected)
    assert found["PATH"].split(os.pathsep)[0] == str(expected.parent) and found["HOME"] == "/"
    assert with_node(found) == found  # a process that was started so asks nothing again


@pytest.mark.slow
def test_the_wheel_brings_node_and_an_npx_that_starts() -> None:
    """Its copies of npm's commands have lost their links: the script is started by its node."""
    brought = nodejs._brought()
    assert brought is not None
    folder = str(Path(brought).parent)
    starter = npx({"PATH": folder})
    assert starter[0] == brought
    said = subprocess.run([*starter, "--version"], env={"PATH": folder}, capture_output=True, check=False)
    assert said.returncode == 0, said.stderr


def test_the_projects_own_cdk_is_taken_where_it_is_new_enough(tmp_path: Path) -> None:
    major, minor, _ = (int(part) for part in pinned_cdk().split("."))
    program(tmp_path / "bin" / "npx")
    variables = {"PATH": str(tmp_path / "bin")}
    fetched = [str(tmp_path / "bin" / "npx"), "--yes", f"aws-cdk@{pinned_cdk()}"]

    for place, version, works in (
        ("same", pinned_cdk(), True),
        ("newer", f"{major}.{minor + 1}.0", True),
        ("older", f"{major}.{minor - 1}.9", False),
        ("other", f"{major + 1}.0.0", False),
    ):
        link = cdk(tmp_path / place, version)
        folder = tmp_path / place / "environments"
        folder.mkdir()
        assert cdk_command(folder, variables) == ([str(link)] if works else fetched), place


def test_one_on_the_path_whose_version_nobody_knows_is_taken(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "cdk")

    assert cdk_command(tmp_path, {"PATH": str(found.parent)}) == [str(found)]


def test_without_any_the_command_that_installs_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=rf"pip install 'ultracluster\[cli\]'.* aws-cdk@{pinned_cdk()}"):
        cdk_command(tmp_path, {"PATH": str(tmp_path)})


def test_the_pinned_version_is_that_of_the_lock() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())

    assert lock["packages"]["node_modules/aws-cdk"]["version"] == pinned_cdk()
