"""The batch script of a PyTorch job: clean, and torchrun once on each node."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli import job

SLURM_TEAMS: dict[str, Any] = {"research": {"quota": 8, "limit": 8, "users": ["alice"]}}


def run(folder: Path, base: str, changes: dict[str, Any], *arguments: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(job.app, ["pytorch", str(file), *arguments])


# --- Slurm -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more", [["--image", "nvcr.io#nvidia/pytorch:26.06-py3"], [], ["--within", "layer-3"]]
)
def test_the_batch_script_is_clean(more: list[str], tmp_path: Path) -> None:
    made = run(tmp_path, "prod", {"teams": SLURM_TEAMS}, "--team", "research", "--nodes", "1", *more)
    assert made.exit_code == 0, made.stderr
    file = tmp_path / "train.sh"
    file.write_text(made.stdout)

    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)
    assert ("--switches=1" in made.stdout) == ("--within" in more)
    assert ("--container-image" in made.stdout) == ("--image" in more)


def test_the_batch_script_runs_torchrun_once_on_each_node(tmp_path: Path) -> None:
    """With stand-ins for srun, scontrol and torchrun that show what reaches them."""
    more = ["--image", "nvcr.io#nvidia/pytorch:26.06-py3", "--script", "/fsx/a.py"]
    made = run(tmp_path, "prod", {"teams": SLURM_TEAMS}, "--team", "research", "--nodes", "1", *more)
    programs = {
        "scontrol": "printf 'node-%s\\n' {1..20000}",  # more than a pipe holds: nobody may stop reading early
        "srun": 'for one in "$@"; do [[ $one == bash ]] && break; echo "$one"; shift; done; exec "$@"',
        "torchrun": 'printf "%s\\n" "$@"',
    }
    for name, text in programs.items():
        file = tmp_path / name
        file.write_text(f"#!/usr/bin/env bash\n{text}\n")
        file.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", made.stdout],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "node-[1-2]", "SLURM_NODEID": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout.splitlines() == [
        "--container-image=nvcr.io#nvidia/pytorch:26.06-py3",
        "--container-mounts=/fsx:/fsx,/home:/home",
        "--nnodes=1",
        "--nproc-per-node=8",
        "--node-rank=1",
        "--master-addr=node-1",
        "--master-port=29500",
        "/fsx/a.py",
    ]
    for line in ("--account=research", "--qos=normal", "--gpus-per-node=8", "--exclusive", "--nodes=1"):
        assert f"#SBATCH {line}\n" in made.stdout
