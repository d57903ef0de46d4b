"""docs/coming-from.md: the commands that it shows do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from shutil import copyfile

import pytest
from import_samples import FOLDER
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
FILES = {
    "cluster.yaml": "pcluster-queues.yaml",
    "create-cluster.json": "hyperpod-lifecycle.json",
    "provisioning_parameters.json": "hyperpod-lifecycle.parameters.json",
    "eksctl.yaml": "eksctl-gpu.yaml",
}
"""Names that the page uses -> samples."""


def commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("ultracluster")]


def test_what_the_page_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, sample in FILES.items():
        copyfile(FOLDER / "samples" / sample, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for command in commands():
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr)
