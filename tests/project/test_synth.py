"""Environment files of one comparison are made by one process, and each failure has its file's name."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from templates import assembly

from ultracluster.change.template_files import read_templates
from ultracluster.config import load
from ultracluster.nodejs import NEXT
from ultracluster.project.place import ProjectError
from ultracluster.project.synth import synth_each

pytestmark = pytest.mark.slow

DEV = (ROOT / "environments" / "dev.yaml").read_text(encoding="utf-8")
GOOD = """
import json, os, pathlib
pathlib.Path(os.environ["CDK_OUTDIR"]).mkdir()
(pathlib.Path(os.environ["CDK_OUTDIR"]) / "manifest.json").write_text(os.environ["CDK_CONTEXT_JSON"])
"""
"""An app.py of people who do not call ours: it makes the one environment of the context."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command of each process that is started."""
    commands: list[list[str]] = []
    run = subprocess.run

    def counted(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if str(command[-1]).endswith("app.py"):
            commands.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    return commands


def files(folder: Path, *texts: str) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for number, text in enumerate(texts):
        file = folder / f"file{number}.yaml"
        file.write_text(text, encoding="utf-8")
        found.append((f"environment {number}", file))
    return found


def test_one_process_makes_what_two_would(tmp_path: Path, started: list[list[str]]) -> None:
    both = files(tmp_path, DEV, DEV.replace("throughput_mbps_per_tib: 250", "throughput_mbps_per_tib: 500"))
    first, second = (read_templates(one) for one in synth_each(ROOT, both, tmp_path / "both"))
    assert len(started) == 1
    alone = assembly(load(both[1][1]).environment, checked=False)
    assert second == read_templates(alone.folder)
    assert second != first and second.keys() == first.keys()


@pytest.mark.parametrize("at", [0, 1])
def test_the_file_that_is_refused_is_named(at: int, tmp_path: Path) -> None:
    texts = [DEV, DEV]
    texts[at] = DEV.replace("usw2-az2", "use1-az9")
    with pytest.raises(
        ProjectError, match=f"^environment {at} cannot be synthesised:\n.*file{at}.yaml"
    ) as error:
        synth_each(ROOT, files(tmp_path, *texts), tmp_path / "out")
    assert "ENV003" in str(error.value) and NEXT not in str(error.value)
    assert f"file{1 - at}.yaml" not in str(error.value)


def test_an_app_of_other_make_runs_once_for_each(tmp_path: Path, started: list[list[str]]) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "app.py").write_text(GOOD)
    (root / "cdk.json").write_text("{}")
    (tmp_path / "out").mkdir()
    folders = synth_each(root, files(tmp_path, DEV, DEV), tmp_path / "out")
    assert len(started) == 2
    assert [(one / "manifest.json").read_text().count(f"file{n}.yaml") for n, one in enumerate(folders)] == [
        1,
        1,
    ]
    (root / "app.py").write_text("")
    with pytest.raises(ProjectError, match="wrote no templates"):
        synth_each(root, files(tmp_path, DEV, DEV), tmp_path / "none")
