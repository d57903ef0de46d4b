"""The batch script of a PyTorch job: clean, and with what its cluster honours.

A real Slurm runs it in tests/slurm_twin/test_training_job.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

SLURM_TEAMS: dict[str, Any] = {"research": {"quota": 8, "limit": 8, "users": ["alice"]}}


def run(folder: Path, base: str, changes: dict[str, Any], *arguments: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), *arguments])


def script(folder: Path, base: str, *more: str, changes: dict[str, Any] | None = None) -> str:
    result = run(folder, base, changes or {}, "--nodes", "1", *more)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "more"),
    [
        ("prod", ["--image", "nvcr.io#nvidia/pytorch:26.06-py3", "--time", "2-00:00:00"]),
        ("prod", []),
        ("prod", ["--no-look"]),
        ("trainium", ["--processes", "8", "--within", "layer-3"]),
        ("parallelcluster-p5", ["--within", "layer-3", "--checkpoints", "/fsx/a-b"]),
        ("parallelcluster-gb200", ["--within", "ultraserver", "--image", "a/b:1"]),
        ("pcs-p6-b200", ["--image", "a/b:1"]),
    ],
)
def test_the_batch_script_is_clean(base: str, more: list[str], tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(script(tmp_path, base, *more))

    subprocess.run(["shellcheck", file], check=True)
    subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True)
    # what nodes run is bash of its own
    for part in re.findall(r"readonly (?:LOOK|STEP)='(.*?)\n'", file.read_text(), re.DOTALL):
        subprocess.run(["shellcheck", "--shell=bash", "-"], input=part, text=True, check=True)


@pytest.mark.parametrize(
    ("base", "processes", "said"),
    [
        ("prod", "8", "EFA interfaces each; 8 processes on a node."),
        ("dev", "1", ", 1 EFA interface each; 1 process on a node."),
    ],
)
def test_one_of_a_thing_is_named_so(base: str, processes: str, said: str, tmp_path: Path) -> None:
    assert f"{said}\n" in script(tmp_path, base, "--processes", processes)


def test_the_options_of_a_team(tmp_path: Path) -> None:
    made = script(tmp_path, "prod", "--team", "research", changes={"teams": SLURM_TEAMS})
    for line in ("--account=research", "--qos=normal", "--gpus-per-node=8", "--exclusive", "--nodes=1"):
        assert f"#SBATCH {line}\n" in made


def test_a_failed_node_is_hyperpods_or_slurms_to_answer(tmp_path: Path) -> None:
    for base, resumes in (("prod", True), ("parallelcluster-p5", False), ("pcs-p6-b200", False)):
        made = script(tmp_path, base)
        assert ("srun --auto-resume=1" in made) == resumes
        assert ("#SBATCH --requeue\n" in made) == (not resumes)
        assert "#SBATCH --open-mode=append\n" in made
        assert "#SBATCH --signal=B:USR1@300\n" in made
        assert "#SBATCH --comment=ultracluster:signal=USR1\n" in made


@pytest.mark.parametrize(
    ("base", "mounts"),
    [
        ("prod", "/fsx:/fsx,/home:/home,/scratch:/scratch"),
        ("parallelcluster-p5", "/fsx:/fsx,/home:/home,/scratch:/scratch"),
    ],
)
def test_a_container_has_shared_and_local_disks(base: str, mounts: str, tmp_path: Path) -> None:
    made = script(tmp_path, base, "--image", "nvcr.io#nvidia/pytorch:26.06-py3")
    assert f" '--container-image=nvcr.io#nvidia/pytorch:26.06-py3' --container-mounts={mounts} bash" in made


@pytest.mark.parametrize(
    ("base", "more", "option"),
    [
        ("prod", ["--within", "layer-3"], "#SBATCH --switches=1@24:00:00\n"),
        ("parallelcluster-p5", ["--within", "layer-3"], "#SBATCH --switches=1@24:00:00\n"),
        ("parallelcluster-gb200", ["--within", "ultraserver"], "#SBATCH --segment=1\n"),
    ],
)
def test_within_is_what_the_cluster_honours(base: str, more: list[str], option: str, tmp_path: Path) -> None:
    made = script(tmp_path, base, *more)
    assert option in made
    assert ("--switches" in made) + ("--segment" in made) == 1


@pytest.mark.parametrize(
    ("base", "words", "said"),
    [
        ("pcs-p6-b200", ["--within", "layer-3"], "AWS PCS has no setting for a topology"),
        ("pcs-p6-b200", ["--within", "ultraserver"], "Slurm would ignore --within ultraserver"),
        ("parallelcluster-gb200", ["--within", "layer-3"], "--within ultraserver keeps a job in one"),
        ("parallelcluster-p5", ["--within", "ultraserver"], "Slurm would ignore --within ultraserver"),
        ("prod", ["--within", "layer-1"], "not `layer-1`: --within layer-3"),
        ("dev", ["--within", "ultraserver"], "is part of no UltraServer"),
        ("prod", ["--time", "soon"], "--time 'soon' has another form than 2-00:00:00"),
        ("prod", ["--checkpoints", "a b"], "--checkpoints 'a b' has another form"),
        ("eks-p5en", ["--image", "a/b", "--time", "60"], "--time is for Slurm, and this is eks"),
    ],
)
def test_what_slurm_would_ignore_is_refused_with_the_reason(
    base: str, words: list[str], said: str, tmp_path: Path
) -> None:
    result = run(tmp_path, base, {}, "--nodes", "1", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_what_may_be_ignored_is_said(tmp_path: Path) -> None:
    result = run(tmp_path, "dev", {}, "--nodes", "1", "--within", "layer-3")
    assert result.exit_code == 0
    assert "--switches=1 counts only if Slurm has switches" in result.stderr
    result = run(tmp_path, "prod", {}, "--nodes", "1", "--within", "layer-3")
    assert "job why" in result.stderr
    assert not run(tmp_path, "prod", {}, "--nodes", "1").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "newest"),
    [
        ([], ""),
        (["step-1", "step-2", "step-10.tmp", ".step-11"], "step-2"),
        (["step-10", "step-9"], "step-9"),
        (["a b"], "a b"),
    ],
)
def test_the_newest_whole_checkpoint_is_told(there: list[str], newest: str, tmp_path: Path) -> None:
    """By its time, not by its name: in this order they were written."""
    for number, name in enumerate(there):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        os.utime(tmp_path / "checkpoints" / name, (1_000_000 + number, 1_000_000 + number))
    made = script(tmp_path, "parallelcluster-p5", "--no-look", "--checkpoints", str(tmp_path / "checkpoints"))
    (tmp_path / "torchrun").write_text('#!/usr/bin/env bash\necho "[${RESUME_FROM##*/}]"\n')
    (tmp_path / "srun").write_text('#!/usr/bin/env bash\nshift\nexec "$@"\n')
    (tmp_path / "scontrol").write_text(
        '#!/usr/bin/env bash\n[[ $2 == hostnames ]] || echo "x NodeList=n1 y"\necho "${3:-}"\n'
    )
    for name in ("torchrun", "srun", "scontrol"):
        (tmp_path / name).chmod(0o755)
    names = {"SLURM_JOB_ID": "1", "SLURMD_NODENAME": "n1", "SLURM_NODEID": "0"}
    done = subprocess.run(
        ["bash", "-c", made],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **names},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"[{newest}]\n"


PAGE = (ROOT / "docs" / "slurm-jobs.md").read_text()


def test_the_page_shows_what_is_so(tmp_path: Path) -> None:
    """Its command is run; its table of --within holds for an example of each column."""
    (line,) = re.findall(r"^ultracluster job write (.*) > train.sh$", PAGE, re.MULTILINE)
    base, *words = line.split()
    result = run(tmp_path, base, {}, *words)
    assert result.exit_code == 0
    assert "#SBATCH --time=2-00:00:00\n" in result.stdout
    columns = ("parallelcluster-p5", "parallelcluster-gb200", "pcs-p6-b200")
    for wish in ("layer-3", "ultraserver", "layer-1", "layer-2"):
        (row,) = [
            line for line in PAGE.splitlines() if line.startswith("| `") and f"`{wish}`" in line.split("|")[1]
        ]
        for column, cell in zip(columns, row.split("|")[2:5], strict=True):
            result = run(tmp_path, column, {}, "--nodes", "1", "--within", wish)
            assert (result.exit_code == 2) == ("refused" in cell), (wish, column)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "accelerator"), [("prod", "h200"), ("pcs-p6-b200", "b200"), ("trainium", None)]
)
def test_a_program_finds_what_tells_its_metrics(base: str, accelerator: str | None, tmp_path: Path) -> None:
    """Where they are collected, and only there; the peak of Trainium is for the program to say."""
    told = ("PYTHONPATH", "ULTRACLUSTER_ACCELERATOR")
    more = () if accelerator else ("--processes", "8")
    without = script(tmp_path, base, *more, changes={"observability": None})
    assert not any(name in without for name in told)

    made = script(tmp_path, base, *more, changes={"observability": {"kind": "prometheus"}})
    file = tmp_path / "train.sh"
    file.write_text(made)
    subprocess.run(["shellcheck", file], check=True)
    exports = [
        line for line in made.splitlines() if line.startswith("export ") and any(map(line.count, told))
    ]
    said = subprocess.run(
        ["bash", "-uc", "\n".join([*exports, 'echo "$PYTHONPATH ${ULTRACLUSTER_ACCELERATOR-none}"'])],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "/mine"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == f"/opt/ultracluster/python:/mine {accelerator or 'none'}\n"
