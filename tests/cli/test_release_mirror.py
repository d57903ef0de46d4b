"""What `ultracluster software mirror --for` asks the mirror for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ("", set[str]()),
        ("observability: {}\n", {"node-exporter", "dcgm-exporter", "prometheus"}),
        ("observability: {kind: cloudwatch}\n", set[str]()),
    ],
    ids=["no metrics", "agents of ours", "AWS's own"],
)
def test_the_mirror_of_an_environment_has_what_its_metrics_take(
    more: str, asked: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "environments" / "dev.yaml").read_text()
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(text + more)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}

    def mirrored(*_: object, **options: Any) -> object:
        found.update(options)
        return SimpleNamespace(uploaded=[], present=[], left_out=[], package_sets={})

    monkeypatch.setattr("ultracluster.cli.release_mirror.mirror_release", mirrored)
    monkeypatch.setattr("ultracluster.cli.release_mirror.s3_client", lambda *_: None)
    command = ["software", "mirror", "--for", "dev", "--bucket", "example-software", "--dry-run"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert found["selection"].optional == asked
