"""`job write --framework jax`: what JAX's own code would read, in each process, under each scheduler.

By hand, with jax 0.10.2 from PyPI: two processes of `launch` found each other, as in two pods, on one node,
and under Slurm's variables with a bare `jax.distributed.initialize()`; examples/train/train_jax.py went on to
the same losses after a stop.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.cli.main import app

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/trainer:1"
READ = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS")
SLURM = ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
"""What jax/_src/distributed.py and slurm_cluster.py read."""


def run(folder: Path, base: str, changes: dict[str, Any], *arguments: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), "--framework", "jax", *arguments])


def last_object(made: Result) -> dict[str, Any]:
    assert made.exit_code == 0, made.stderr
    return list(YAML(typ="safe").load_all(made.stdout))[-1]


def container(made: dict[str, Any]) -> dict[str, Any]:
    spec = made["spec"]
    if made["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    elif "tasks" in spec:
        spec = spec["tasks"][0]
    return spec["template"]["spec"]["containers"][0]


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A `python` that says what it would read, and fails where it is told to."""
    (tmp_path / "python").write_text(
        "#!/usr/bin/env bash\n"
        f'for name in {" ".join((*READ, *SLURM))}; do line+="${{!name-}} "; done\n'
        'echo "$line$*"\n'
        '[[ "$JAX_PROCESS_ID" != "${FAILS:-}" ]] || exit 7\n'
        '[[ -z "${FAILS:-}" ]] || exec sleep 60\n'
    )
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def of_pod(made: dict[str, Any], rank: int, folder: Path, **more: str) -> tuple[list[str], int]:
    """Run a pod's command, with what Kubernetes puts into its arguments."""
    one = container(made)
    words = [
        word.replace("$(JOB_COMPLETION_INDEX)", str(rank)).replace("$(VC_TASK_INDEX)", str(rank))
        for word in one["args"]
    ]
    done = subprocess.run(
        [*one["command"], *words],
        env={"PATH": f"{folder}:{os.environ['PATH']}", **more},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return sorted(done.stdout.splitlines()), done.returncode


SCHEDULERS = {
    "kueue": ("eks-p5en", {}, "train-node-0-0.train"),
    "kai": ("eks-p5en", {"orchestrator.scheduler": "kai"}, "train-node-0-0.train"),
    "volcano": ("eks-p5en", {"orchestrator.scheduler": "volcano"}, "train-node-0.train"),
    "task-governance": (
        "hyperpod-eks-p5",
        {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"},
        "train-0.train",
    ),
}
TEAMS: dict[str, Any] = {"teams": {"research": {"quota": 16}}}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_process_of_a_pod_reads_its_place(scheduler: str, stand_in: Path) -> None:
    base, changes, master = SCHEDULERS[scheduler]
    asked = ["--team", "research", "--nodes", "2", "--image", IMAGE]
    made = last_object(run(stand_in, base, {**changes, **TEAMS}, *asked))
    for release in kubernetes_releases():
        assert problems(made, kubernetes=release) == []
    assert of_pod(made, 1, stand_in) == ([f"{master}:29500 2 1 0,1,2,3,4,5,6,7    /fsx/train.py"], 0)
    assert {"name": "NCCL_SOCKET_IFNAME", "value": "^docker,lo,veth"} in container(made)["env"]

    made = last_object(run(stand_in, base, {**changes, **TEAMS}, *asked, "--processes", "8"))
    lines, status = of_pod(made, 1, stand_in)
    assert (len(lines), status) == (8, 0)
    assert sorted(lines) == sorted(
        f"{master}:29500 16 {8 + place} {place}    /fsx/train.py" for place in range(8)
    )


def test_a_process_that_fails_ends_the_others(stand_in: Path) -> None:
    made = last_object(run(stand_in, "eks-p5en", {}, "--nodes", "1", "--image", IMAGE, "--processes", "8"))
    lines, status = of_pod(made, 0, stand_in, FAILS="3")
    assert (len(lines), status) == (8, 7)


@pytest.mark.parametrize("processes", [1, 8])
def test_a_bare_initialize_reads_the_same_under_slurm(processes: int, stand_in: Path) -> None:
    words = f"--nodes 2 --no-look --script t.py --processes {processes} --checkpoints {stand_in}/checkpoints"
    result = run(stand_in, "prod", {}, *words.split())
    assert result.exit_code == 0, result.stderr
    file = stand_in / "train.sh"
    file.write_text(result.stdout)
    subprocess.run(["shellcheck", file], check=True)
    (stand_in / "srun").write_text('#!/usr/bin/env bash\nshift\nexec "$@"\n')
    (stand_in / "scontrol").write_text(
        '#!/usr/bin/env bash\n[[ $2 == hostnames ]] || echo "x NodeList=n[1-2] y"\nprintf "n1\\nn2\\n"\n'
    )
    for name in ("srun", "scontrol"):
        (stand_in / name).chmod(0o755)
    names = {
        "SLURM_JOB_ID": "9",
        "SLURMD_NODENAME": "n2",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "0",
    }
    done = subprocess.run(
        ["bash", "-c", result.stdout],
        env={"PATH": f"{stand_in}:/usr/bin:/bin", **names},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if processes == 1:
        assert done.stdout == "n1:29500 2 1 0,1,2,3,4,5,6,7 2 1 0 t.py\n"
    else:
        wanted = [f"n1:29500 16 {8 + one} {one} 16 {8 + one} {one} t.py" for one in range(8)]
        assert sorted(done.stdout.splitlines()) == sorted(wanted)


@pytest.mark.parametrize(
    ("base", "words", "said"),
    [
        (
            "trainium",
            ["--nodes", "1"],
            "--framework jax is for NVIDIA GPUs, and trn2 (trn2.48xlarge) has none",
        ),
        ("eks-trn2", ["--nodes", "1", "--image", IMAGE], "is for NVIDIA GPUs"),
        ("prod", ["--nodes", "1", "--processes", "3"], "Use: --processes 1, or --processes 8"),
        ("eks-p5en", ["--nodes", "1"], "--image, with JAX, libfabric"),
        ("eks-p5en", ["--nodes", "999", "--image", IMAGE], "999"),
        ("eks-p5en", ["--nodes", "1", "--image", IMAGE, "--script", "a;b"], "not allowed there"),
    ],
)
def test_what_jax_cannot_be_started_on(base: str, words: list[str], said: str, tmp_path: Path) -> None:
    result = run(tmp_path, base, {}, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_the_example_starts_as_its_text_says() -> None:
    text = (ROOT / "examples" / "train" / "train_jax.py").read_text()
    for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        assert f'os.environ["{name}"]' in text
    compile(text, "train_jax.py", "exec")
