"""`make iam-tables`: of a name, an overlay, any file; and what is no environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from iam_proof import __main__ as tables
from iam_proof.evaluator import why_not_here
from project import ROOT


@pytest.fixture(autouse=True)
def evaluator_is_here(outside: None) -> None:
    if missing := why_not_here():
        pytest.skip(missing)


@pytest.mark.parametrize("overlay", ["spaces", "inference"])
def test_an_overlay_is_as_its_tables_say(overlay: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = tables.main([f"environments/wishes/{overlay}.yaml"])

    page = capsys.readouterr().out
    assert "**NO**" not in page and code == 0
    assert "## What must be denied" in page and f"wishes/{overlay}.yaml" in page


def test_a_file_elsewhere_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.yaml"
    text = (ROOT / "environments" / "dev.yaml").read_text(encoding="utf-8")
    file.write_text(text.replace("name: dev\n", 'name: own\naccount: "222233334444"\n'), encoding="utf-8")

    assert tables.main([str(file)]) == 0
    assert "arn:aws:s3:::cdk-hnb659fds-assets-222233334444" in capsys.readouterr().out


def test_what_is_no_environment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\nregion: mars\n", encoding="utf-8")

    assert tables.main(["prodd"]) == 2
    assert "no environment is called prodd; there are: dev;" in capsys.readouterr().err
    assert tables.main([str(tmp_path / "none.yaml")]) == 2
    assert tables.main([str(broken)]) == 2
    assert "broken.yaml" in capsys.readouterr().err


def test_a_right_that_no_row_allows_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "rows", lambda: ())
    monkeypatch.setattr(tables, "rows_for", lambda name: ())

    assert tables.main(["dev"]) == 1
    assert (
        "hyperpod-slurm/login may s3:ListBucket on arn:aws:s3:::{buckets.Scripts}" in capsys.readouterr().out
    )
