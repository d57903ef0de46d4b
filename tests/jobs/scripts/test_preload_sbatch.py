"""`job write --preload` on Slurm: a batch script that is clean, runs, and says how much it loaded."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow


def test_the_batch_script_is_clean_and_sums(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        [
            "job",
            "write",
            str(ROOT / "environments" / "prod.yaml"),
            "--preload",
            "/fsx/datasets/x",
            "--nodes",
            "2",
        ],
    )
    assert result.exit_code == 0, result.stderr
    assert "#SBATCH --nodes=2\n" in result.stdout and "gpus" not in result.stdout
    file = tmp_path / "preload.sh"
    file.write_text(result.stdout)
    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)
    (inner,) = re.findall(r"readonly PRELOAD='(.*?)\n'", result.stdout, re.DOTALL)
    subprocess.run(["shellcheck", "--shell=bash", "-"], input=inner, text=True, check=True)

    (tmp_path / "srun").write_text(
        '#!/bin/bash\nfor one in 0 1; do SLURM_NTASKS=2 SLURM_PROCID=$one "$@" || exit; done\n'
    )
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "data").mkdir()
    for number in range(30):
        (tmp_path / "data" / f"shard-{number}").write_bytes(bytes(10_000_000 if number == 0 else 1))
    done = subprocess.run(
        ["bash", "-c", result.stdout.replace("/fsx/datasets/x", str(tmp_path / "data"))],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "30 files, 0.01 GB are on the file system"
