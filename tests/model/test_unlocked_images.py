"""Which groups boot whatever is newest at a deploy, over every environment and optional feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

from ultracluster.config import Environment, load
from ultracluster.model import resolve
from ultracluster.model.unlocked_images import unlocked_images
from ultracluster.software.locked_images import waits_for_first_deploy, with_locked_images

FOLDER = ROOT / "environments"
ENVIRONMENTS = sorted([*FOLDER.glob("*.yaml"), *(FOLDER / "wishes").glob("*.yaml")])
AMI = "ami-0123456789abcdef0"


def locked(environment: Environment, folder: Path, rows: dict[str, dict[str, Any]]) -> Environment:
    """The environment as if read from `folder`, with a lock of these images beside it."""
    file = folder / f"{environment.name}.yaml"
    content = {
        "schema": 1,
        "environment": environment.name,
        "release": environment.software.release,
        "images": {name: {"recorded": "2026-11-27", **row} for name, row in rows.items()},
    }
    file.with_suffix(".lock").write_text(json.dumps(content))
    return environment.at(file)


def row(environment: Environment, what: str) -> dict[str, Any]:
    if what.startswith("/"):
        return {"image": AMI, "parameter": what}
    assert environment.kubernetes
    return {"image": AMI, "release": f"{environment.kubernetes.kubernetes_version}.4-20261012"}


@pytest.mark.parametrize("file", ENVIRONMENTS, ids=lambda file: file.stem)
def test_a_lock_of_every_image_leaves_none_to_be_resolved(file: Path, tmp_path: Path) -> None:
    environment = load(file).environment
    found = unlocked_images(resolve(environment))
    if environment.orchestrator.kind == "pcs" or environment.kubernetes:
        assert found
    else:
        assert not found
    whole = locked(environment, tmp_path, {name: row(environment, what) for name, what in found.items()})
    assert unlocked_images(resolve(whole)) == {}
    assert all(not group.image_parameter for group in with_locked_images(whole).node_groups.values())
    for name in found:  # each of them alone is missed
        rest = {other: row(environment, what) for other, what in found.items() if other != name}
        assert list(unlocked_images(resolve(locked(environment, tmp_path, rest)))) == [name]


def test_another_parameter_than_the_locked_one_is_not_locked(tmp_path: Path) -> None:
    environment = load(ROOT / "environments/pcs-p6-b200.yaml").environment
    found = unlocked_images(resolve(environment))
    rows = {name: {"image": AMI, "parameter": "/images/other"} for name in found}
    assert unlocked_images(resolve(locked(environment, tmp_path, rows))) == found


def test_the_first_deploy_is_waited_for_until_an_image_is_locked(tmp_path: Path) -> None:
    environment = load(ROOT / "environments/pcs-p6-b200.yaml").environment
    assert waits_for_first_deploy(environment)
    assert waits_for_first_deploy(locked(environment, tmp_path, {}))
    assert not waits_for_first_deploy(locked(environment, tmp_path, {"login": {"image": AMI}}))
    assert not waits_for_first_deploy(environment.without_file())
