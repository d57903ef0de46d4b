"""`ultracluster import`: what it writes, prints and says next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_samples import FOLDER, assert_validates
from typer.testing import CliRunner

from ultracluster.cli.main import app

SAMPLE = FOLDER / "samples" / "pcluster-queues.yaml"


def test_the_environment_goes_where_it_is_asked_and_the_list_to_the_user(tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--to", str(new), "--zone-id", "usw2-az2"])

    assert result.exit_code == 0, result.stderr
    assert_validates(new.read_text(), tmp_path / "again.yaml")
    assert "zone_id: usw2-az2" in new.read_text()
    assert result.stdout.startswith(
        "new: parallelcluster in us-west-2, 7 node groups, from AWS ParallelCluster."
    )
    for heading in ("Left out:", "Changed:", "Assumed"):
        assert f"\n{heading}" in result.stdout
    assert f"ultracluster plan {new}" in result.stderr


def test_the_list_is_as_wide_as_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--to", str(tmp_path / "new.yaml")])
    told = [line for line in result.stdout.splitlines() if not line.startswith("- ")]
    assert max(map(len, told)) <= 80


def test_without_a_file_it_is_printed(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--name", "Two Words"])

    assert result.exit_code == 0
    assert "name: two-words" in result.stdout
    assert_validates(result.stdout, tmp_path / "new.yaml")


def test_json_has_the_rows_and_the_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--json"])
    document = json.loads(result.stdout)

    assert document["file"] is None
    assert {row["outcome"] for row in document["rows"]} == {"left out", "changed", "assumed"}
    assert all(row["where"] and row["why"] and row["todo"] for row in document["rows"])
    assert_validates(document["text"], tmp_path / "new.yaml")


def test_what_is_imported_is_never_replaced_by_what_comes_of_it(tmp_path: Path) -> None:
    mine = tmp_path / "cluster.yaml"
    mine.write_bytes(SAMPLE.read_bytes())
    other = tmp_path / "sub" / ".." / "cluster.yaml"
    (tmp_path / "sub").mkdir()
    result = CliRunner().invoke(app, ["import", str(mine), "--to", str(other), "--force"])

    assert result.exit_code == 2 and "is what is imported" in result.stderr
    assert mine.read_bytes() == SAMPLE.read_bytes()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_is_no_place_for_the_new_file(tmp_path: Path, force: list[str]) -> None:
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--to", str(tmp_path), *force])
    assert result.exit_code == 2 and "is a folder" in result.stderr and "--force" not in result.stderr


@pytest.mark.parametrize("zone", ["nope", "use1-az1", "us-west-2a", "usw2-az1\x1b[2J"])
def test_another_zone_than_the_one_that_was_asked_for_is_no_answer(tmp_path: Path, zone: str) -> None:
    new = tmp_path / "new.yaml"
    result = CliRunner().invoke(app, ["import", str(SAMPLE), "--to", str(new), "--zone-id", zone])
    assert result.exit_code == 2 and "instead:" in result.stderr
    assert "\x1b" not in result.stderr and not new.exists()
