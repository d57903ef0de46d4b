"""`ultracluster import`: what it writes, prints and says next."""

from __future__ import annotations

import json
from pathlib import Path

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
