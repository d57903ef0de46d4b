"""docs/coming-from.md: the commands that it shows do what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import pytest
from import_samples import FOLDER
from moto import mock_aws
from project import ROOT
from running_clusters import Clusters
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
FILES = {
    "cluster.yaml": "pcluster-queues.yaml",
    "create-cluster.json": "hyperpod-lifecycle.json",
    "provisioning_parameters.json": "hyperpod-lifecycle.parameters.json",
    "eksctl.yaml": "eksctl-gpu.yaml",
    "console-parameters.json": "console-slurm.json",
    "cluster.template.yaml": "cloudformation.template.yaml",
    "stack.json": "cloudformation.parameters.json",
    "my-hyperpod/cluster-config.json": "hyperpod-lifecycle.json",
    "my-hyperpod/provisioning_parameters.json": "hyperpod-lifecycle.parameters.json",
}
"""Names that the page uses -> samples."""


def commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("ultracluster")]


@pytest.fixture
def running() -> Iterator[Clusters]:
    """An account with the cluster that the page asks for."""
    with mock_aws():
        clusters = Clusters()
        clusters.hyperpod_cluster("train")
        yield clusters


def test_what_the_page_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: Clusters) -> None:
    for name, sample in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copyfile(FOLDER / "samples" / sample, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(aws, "Account", lambda **_: running.account)
    for command in commands():
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr)
