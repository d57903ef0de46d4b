"""A folder as awsome-distributed-ai leaves it: the cluster's JSON, lifecycle scripts, switches and people."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from import_samples import FOLDER, assert_validates
from typer.testing import CliRunner

from ultracluster.cli.main import app
from ultracluster.imports import base_config, folder
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.reading import everything
from ultracluster.imports.surroundings import Asked

CONFIG = """
class Config:
    enable_docker_enroot_pyxis = True
    enable_observability = True
    enable_pam_slurm_adopt = True
    enable_sssd = True
    enable_mount_s3 = True
    enable_fsx_openzfs = True
    enable_slurm_log_rotation = True
    s3_bucket = "example-datasets"
    if enable_mount_s3 and not s3_bucket:
        raise ValueError("a bucket must be named")
class ObservabilityConfig:
    prometheus_remote_write_url = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
    advanced_metrics = False
class SssdConfig:
    ldap_uri = "ldaps://directory.example.com"
    ldap_default_authtok = "do-not-show"
    ssh_allow_groups = {"login": ["admins"]}
"""
PREREQUISITES = """
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  PrimarySubnetAZ: {Type: String, Default: usw2-az2}
  BackupSubnetAZ: {Type: String, Default: ""}
  Capacity: {Type: Number, Default: 4800}
  PerUnitStorageThroughput: {Type: Number, Default: 250}
  Compression: {Type: String, Default: LZ4}
  LustreVersion: {Type: String, Default: "2.15"}
  CreateOpenZFS: {Type: String, Default: "true"}
  OpenZFSThroughput: {Type: Number, Default: 160}
  OpenZFSStorageCapacity: {Type: Number, Default: 512}
  OpenZFSIops: {Type: Number, Default: 0}
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: !FindInMap [a, b, c]}}
"""


def fill(place: Path, **files: str) -> Path:
    """The folder, with further files by name (`__` is a slash)."""
    scripts = place / "LifecycleScripts" / "base-config"
    scripts.mkdir(parents=True)
    copyfile(FOLDER / "samples" / "hyperpod-lifecycle.json", place / "cluster-config.json")
    copyfile(
        FOLDER / "samples" / "hyperpod-lifecycle.parameters.json", scripts / "provisioning_parameters.json"
    )
    (scripts / "config.py").write_text(CONFIG)
    (scripts / "on_create.sh").write_text("#!/bin/bash\n")
    (scripts / "mine.sh").write_text("#!/bin/bash\n")
    (scripts / "shared_users.txt").write_text("alice,2001,/fsx/alice\nbob,2002,/fsx/bob\n")
    (place / "sagemaker-hyperpod.yaml").write_text(PREREQUISITES)
    for name, text in files.items():
        (place / name.replace("__", "/")).write_text(text)
    return place


def made(place: Path) -> Imported:
    return finished(everything([place], Asked()), "train")


def test_the_whole_folder_with_every_loss(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = made(fill(tmp_path / "train"))
    text = found.text.replace(found.environment.software.release, "RELEASE")
    expected = FOLDER / "expected" / "folder-base-config.yaml"
    if request.config.option.update_snapshots:
        expected.write_text(text, encoding="utf-8")

    assert text == expected.read_text(encoding="utf-8")
    assert_validates(found.text, tmp_path / "new.yaml")
    assert "do-not-show" not in text
    assert found.environment.users["alice"].uid == 2001
    assert found.environment.access.node_ssh == "jobs"


def test_a_file_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    found = made(fill(tmp_path / "train", **{"values.yaml": "a: {{ .Values.x }}\n", "b.json": "{"}))

    assert {row.where for row in found.rows} >= {"values.yaml", "b.json"}


STATES: list[tuple[dict[str, str], str]] = [
    ({"other.json": (FOLDER / "samples" / "hyperpod-api.json").read_text()}, "one after the other"),
    ({"pcluster.yaml": (FOLDER / "samples" / "pcluster-queues.yaml").read_text()}, "one after the other"),
    (
        {"more.json": json.dumps({"workload_manager": "slurm", "controller_group": "x"})},
        "one after the other",
    ),
    ({"shared_users.yaml": "users: [{username: a, uid: two}]"}, "whole number"),
]


@pytest.mark.parametrize(("files", "telling"), STATES)
def test_what_does_not_go_together_is_refused(files: dict[str, str], telling: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import", str(fill(tmp_path / "train", **files))])

    assert (result.exit_code, telling in result.stderr) == (2, True), result.stderr
    assert "Traceback" not in result.stderr


def test_scripts_alone_are_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(CONFIG)
    result = CliRunner().invoke(app, ["import", str(tmp_path)])

    assert (result.exit_code, "no cluster by itself" in result.stderr) == (2, True), result.stderr


def test_links_hidden_folders_and_the_deep_are_left_alone(tmp_path: Path) -> None:
    place = fill(tmp_path / "train")
    (place / ".git").mkdir()
    (place / ".git" / "a.json").write_text("{")
    (place / "link.json").symlink_to("/etc/passwd")
    (place / "loop").symlink_to(place)
    deep = place / "a/b/c/d/e/f"
    deep.mkdir(parents=True)
    (deep / "x.json").write_text("{")

    assert not [row for row in made(place).rows if "could not be read" in row.why]


def test_a_folder_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MOST_FILES", 3)
    result = CliRunner().invoke(app, ["import", str(fill(tmp_path / "train"))])
    assert (result.exit_code, "files" in result.stderr) == (2, True)


OUT = "worked out by the program"
PROGRAMS: list[tuple[str, dict[str, Any] | None]] = [
    ("class Config:\n    enable_sssd = __import__('os').system('x')\n", {"enable_sssd": OUT}),
    ("class Other:\n    a = 1\n", None),
    ("class Config(:\n", None),
    ("(" * 100_000, None),
    ("class Config:\n    a, b = 1, 2\n    enable_sssd = False\n", {"enable_sssd": False}),
    ("x = 1\0", None),
]


@pytest.mark.parametrize(("text", "values"), PROGRAMS)
def test_a_program_is_read_and_never_run(text: str, values: dict[str, Any] | None) -> None:
    found = base_config.settings(text)

    assert (found or {}).get("Config") == values


PEOPLE: list[tuple[str, list[str]]] = [
    ("groups:\n  - {name: a, slurm_account: a, users: [{username: alice, uid: 2001}]}\n", ["alice"]),
    ("users:\n  - {username: Alice Smith, uid: 2001}\n  - {username: bob, uid: 2002}\n", ["bob"]),
    ("users:\n  - {username: bob, uid: 2002}\n  - {username: bob, uid: 2003}\n", ["bob"]),
]


@pytest.mark.parametrize(("text", "names"), PEOPLE)
def test_people_of_each_form(text: str, names: list[str], tmp_path: Path) -> None:
    place = fill(tmp_path / "train")
    (place / "LifecycleScripts/base-config/shared_users.txt").unlink()
    (place / "shared_users.yaml").write_text(text)

    assert list(made(place).environment.users) == names
