"""Environments beside each other: what a copy points at is refused until one of the two files names it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from ruamel.yaml import YAML
from rules_support import environment_data

from ultracluster.config import Finding, load
from ultracluster.config.capacity import STAND_IN
from ultracluster.rules import check
from ultracluster.rules.engine import run
from ultracluster.rules.examples import applied, examples
from ultracluster.rules.sets import CPY

PLAN = {"node_groups.gpu.capacity": {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60718"}}
DRAFT = {"node_groups.gpu.capacity": {"kind": "reservation", "id": STAND_IN}}
OWN = {"storage.lustre.data_repositories": {"/checkpoints": {}, "/more": {"bucket": "elsewhere"}}}
REASON = "Both run from it, each on half of its nodes."


def write(folder: Path, name: str, changes: dict[str, Any]) -> Path:
    data = applied(environment_data("dev"), {**changes, "name": name})
    file = folder / f"{name}.yaml"
    with file.open("w") as opened:
        YAML().dump(data, opened)
    return file


def found(file: Path) -> list[Finding]:
    return [one for one in check(load(file)) if one.code.startswith("CPY")]


@pytest.mark.parametrize("code", [rule.id for rule in CPY.rules])
def test_the_examples_are_found_in_these_words(code: str, tmp_path: Path) -> None:
    example = examples()[code]
    write(tmp_path, "team", example.bad)
    (bad,) = run(CPY.rules, load(write(tmp_path, "dev", example.bad)))
    assert (bad.dotted, bad.message, bad.instead) == (example.at, example.says, example.instead)
    assert bad.blocks and bad.location

    data = applied(applied(environment_data("dev"), example.bad), example.good)
    with (tmp_path / "dev.yaml").open("w") as opened:
        YAML().dump(data, opened)
    assert run(CPY.rules, load(tmp_path / "dev.yaml")) == []


@pytest.mark.parametrize("changes", [PLAN, OWN])
@pytest.mark.parametrize("which", ["dev", "team"])
def test_named_in_one_of_the_files_it_is_a_warning_with_its_reason(
    changes: dict[str, Any], which: str, tmp_path: Path
) -> None:
    code = "CPY001" if changes is PLAN else "CPY002"
    entry = {"acknowledge": [{"rule": code, "reason": REASON}]}
    files = {
        name: write(tmp_path, name, {**changes, **(entry if name == which else {})})
        for name in ("dev", "team")
    }
    other = next(name for name in files if name != which)

    (named,) = found(files[which])
    assert (named.severity, named.acknowledged) == ("warning", REASON)
    assert found(files[other]) == []


def test_a_copy_by_extends_is_seen(tmp_path: Path) -> None:
    write(tmp_path, "prod", {**PLAN, **OWN})
    move = tmp_path / "move.yaml"
    move.write_text("extends: prod.yaml\nname: move\n")

    assert {one.code for one in found(move)} == {"CPY001", "CPY002"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PLAN, {}),
        (PLAN, {"node_groups.gpu.capacity": {"kind": "reservation", "id": "cr-0123456789abcdef1"}}),
        ({}, {}),
        (DRAFT, DRAFT),
        (OWN, {}),
        (OWN, {**OWN, "storage.lustre.capacity_gib": 2400}),
        ({"storage.lustre.data_repositories": {"/checkpoints": {"bucket": "theirs"}}}, OWN),
        ({"storage.lustre.data_repositories": {"/checkpoints": {}}},
         {"storage.lustre.data_repositories": {"/others": {}}}),
    ],
)  # fmt: skip
def test_what_shares_nothing_is_no_copy(ours: dict[str, Any], theirs: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, "team", theirs)

    assert found(write(tmp_path, "dev", ours)) == []


def test_what_lies_beside_and_is_no_environment_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, "dev", {**PLAN, **OWN})
    (tmp_path / "base.yaml").write_text("region: us-west-2\n")
    (tmp_path / "wrong.yaml").write_bytes(b"\xff\xfe: [")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "same.yaml").write_text(file.read_text())  # the same environment under another file name

    assert found(file) == []


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, "team", {})
    file = write(tmp_path, "dev", PLAN)
    assert found(file) == []
    time.sleep(0.01)
    write(tmp_path, "team", PLAN)
    assert [one.code for one in found(file)] == ["CPY001"]


def test_an_acknowledgement_of_nothing_is_out_of_date(tmp_path: Path) -> None:
    file = write(tmp_path, "dev", {"acknowledge": [{"rule": "CPY001", "reason": REASON}]})

    assert "ACK002" in {one.code for one in check(load(file))}


def test_the_shipped_environments_share_nothing() -> None:
    assert [one for file in (ROOT / "environments").glob("*.yaml") for one in found(file)] == []
