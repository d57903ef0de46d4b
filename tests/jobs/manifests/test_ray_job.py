"""`job write --framework ray`: a RayJob that its definition takes; a batch script, run with a stand-in."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from pod_security import violations
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app
from ultracluster.jobs.manifests.job_kinds import kind_of

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/verl:1"
KUBERAY = {"orchestrator.kuberay": True}
TEAMS: dict[str, Any] = {"teams": {"research": {"quota": 16}}}
RECIPE = ["--recipe", "verl-grpo", "--model", "Qwen/Qwen2.5-7B", "--data", "/fsx/data", "--model-size"]


def run(folder: Path, base: str, changes: dict[str, Any], *arguments: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), "--framework", "ray", *arguments])


def ray_job(made: Result) -> dict[str, Any]:
    assert made.exit_code == 0, made.stderr
    found = list(YAML(typ="safe").load_all(made.stdout))[-1]
    assert problems(found) == []
    return found


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5"])
def test_a_rayjob_has_its_nodes_from_its_queue(base: str, tmp_path: Path) -> None:
    found = ray_job(
        run(tmp_path, base, {**KUBERAY, **TEAMS}, *f"--team research --nodes 2 --image {IMAGE}".split())
    )
    spec, ray = found["spec"], found["spec"]["rayClusterSpec"]
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert (spec["suspend"], spec["shutdownAfterJobFinishes"]) == (True, True)
    assert spec["entrypoint"] == "python /fsx/train.py"
    assert ray["authOptions"] == {"mode": "token"} and "token" not in str(spec["submitterPodTemplate"])
    head, (workers,) = ray["headGroupSpec"]["template"], ray["workerGroupSpecs"]
    assert workers["template"] == head and workers["replicas"] == 1
    limits = head["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "8" and limits["vpc.amazonaws.com/efa"] and limits["hugepages-2Mi"]
    annotations = head["metadata"]["annotations"]
    assert annotations["kueue.x-k8s.io/podset-group-name"] == "nodes"
    (small,) = spec["submitterPodTemplate"]["spec"]["containers"]
    assert small["resources"]["limits"] == {"memory": "1Gi"}


@pytest.mark.parametrize("kind", ["ray", "preload"])
def test_pods_are_let_into_a_restricted_namespace(kind: str, tmp_path: Path) -> None:
    """Also what KubeRay adds to a worker: a container that waits, with the worker's own context."""
    teams = {"teams": {"research": {"quota": 16, "uid": 2001}}}
    run(tmp_path, "eks-p5en", {**KUBERAY, **teams}, "--nodes", "1", "--team", "research", "--image", IMAGE)
    words = ["--preload", "/fsx/checkpoints"] if kind == "preload" else ["--framework", "ray"]
    file = str(tmp_path / "cluster.yaml")
    result = CliRunner().invoke(
        app, ["job", "write", file, *words, "--nodes", "2", "--team", "research", "--image", IMAGE]
    )
    found = YAML(typ="safe").load(result.stdout)
    row = kind_of(found)
    assert row
    pods = list(row.templates(found))
    assert len(pods) == (3 if kind == "ray" else 1)
    for pod in pods:
        assert violations(pod, "restricted") == []
        assert pod["spec"]["securityContext"]["runAsUser"] == 2001
        assert pod["spec"]["automountServiceAccountToken"] is False


def test_one_node_is_a_head_alone(tmp_path: Path) -> None:
    result = run(tmp_path, "eks-p5en", KUBERAY, "--nodes", "1", "--image", IMAGE)
    ray = ray_job(result)["spec"]["rayClusterSpec"]
    assert "workerGroupSpecs" not in ray
    assert "podset-group-name" not in str(ray)


@pytest.mark.parametrize(
    ("base", "changes", "words", "said"),
    [
        ("eks-p5en", {}, "--image a/b:1", "orchestrator.kuberay is off: kuberay: true"),
        (
            "eks-p5en",
            {**KUBERAY, "orchestrator.scheduler": "volcano"},
            "--image a/b:1",
            "Kueue admits a RayJob as a whole, and this has volcano: scheduler: kueue",
        ),
        ("eks-p5en", KUBERAY, "", "a pod needs an image: --image, with Ray"),
        (
            "eks-trn2",
            KUBERAY,
            "--image a/b:1",
            "--framework ray is for NVIDIA GPUs, and trn2 (trn2.48xlarge)",
        ),
        ("trainium", {}, "", "--framework ray is for NVIDIA GPUs"),
        ("prod", {}, "--recipe verl", "--model, --model-size, --data is missing: --recipe requires it"),
        ("prod", {}, "--model a", "--model: of a recipe, and there is no --recipe"),
        ("prod", {}, f"{' '.join(RECIPE)} 7B --script a.py", "a job starts one of them"),
        ("prod", {}, f"{' '.join(RECIPE)} seven", "'seven' is not a model size"),
        ("prod", {}, " ".join([*RECIPE[2:], "7B", "--recipe", "x"]), "there is no recipe `x`: verl-grpo"),
        ("dev", {}, f"{' '.join(RECIPE)} 72B", "a rollout has"),
        ("prod", {}, f"{' '.join(RECIPE)} 100B", "Use at least: --nodes 2"),
        ("trainium", {}, f"{' '.join(RECIPE)} 7B", "is for NVIDIA GPUs"),
    ],
)
def test_what_ray_is_not_started_on_is_one_sentence(
    base: str, changes: dict[str, Any], words: str, said: str, tmp_path: Path
) -> None:
    result = run(tmp_path, base, changes, "--nodes", "1", *words.split())
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(("size", "parallel", "offload"), [("7B", 1, False), ("72B", 2, True)])
def test_a_recipe_is_sized_by_its_model(size: str, parallel: int, offload: bool, tmp_path: Path) -> None:
    on_slurm = run(tmp_path, "prod", {}, "--nodes", "2", *RECIPE, size)
    assert on_slurm.exit_code == 0, on_slurm.stderr
    entry = ray_job(run(tmp_path, "eks-p5en", KUBERAY, "--nodes", "2", "--image", IMAGE, *RECIPE, size))[
        "spec"
    ]
    for text in (on_slurm.stdout, entry["entrypoint"]):
        for word in (
            "-m verl.trainer.main_ppo", "algorithm.adv_estimator=grpo", "trainer.nnodes=2",
            "trainer.n_gpus_per_node=8", f"tensor_model_parallel_size={parallel} ",
            f"fsdp_config.optimizer_offload={offload} ", "trainer.default_local_dir=/fsx/checkpoints/train",
        ):  # fmt: skip
            assert word in text


# --- Slurm: the script runs, with a stand-in for Ray ------------------------------------------------------

RAY = """\
#!/usr/bin/env bash
# What `ray` does of what the script uses: a head that answers at its port, workers that stay while it does
echo "$SLURMD_NODENAME ray $*" >>"$SEEN"
[[ $RAY_AUTH_MODE == token && ${#RAY_AUTH_TOKEN} == 64 ]] || exit 9
for word in "$@"; do
  case "$word" in
    --port=*) port=${word#*=} ;;
    --address=*) address=${word#*=} ;;
  esac
done
case "$1 $2" in
  "start --head")
    python3 "$STAND_IN/head.py" "$port" >/dev/null 2>&1 &
    echo "$!" >"$STAND_IN/head.pid"
    until (exec 3<>"/dev/tcp/localhost/$port") 2>/dev/null; do kill -0 "$!" || exit 1; done
    ;;
  start*)
    [[ $SLURMD_NODENAME != "${BROKEN:-}" ]] || exit 5
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    : >"$STAND_IN/joined"
    read -r -u 3 _ # until the head is gone
    exit 1 # as Ray does, whose processes ended without being asked to
    ;;
  stop*) kill "$(<"$STAND_IN/head.pid")" ;;
esac
"""
HEAD = """\
import socket, sys
listener = socket.create_server(("localhost", int(sys.argv[1])), backlog=64)
kept = []
while True:
    kept.append(listener.accept())
"""
MODULE = """\
import os
def init(address):
    assert address.startswith("localhost:"), address
def nodes():
    joined = os.path.exists(os.environ["STAND_IN"] + "/joined")
    return [{"Alive": True}, {"Alive": joined}]
"""
SRUN = """\
#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
status=0 tasks=()
for place in 0 1; do
  names=(localhost 127.0.0.2)
  SLURMD_NODENAME=${names[place]} SLURM_NODEID=$place "$@" &
  tasks+=("$!")
done
for one in "${tasks[@]}"; do wait "$one" || status=$?; done
exit "$status"
"""
SCONTROL = """\
#!/usr/bin/env bash
[[ $2 == hostnames ]] || echo "x NodeList=n[1-2] y"
printf "localhost\\n127.0.0.2\\n"
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two nodes on this machine, with `srun`, `scontrol`, `ray` and a module of it."""
    programs = {"ray": RAY, "srun": SRUN, "scontrol": SCONTROL, "python": '#!/bin/bash\nexit "${ENDS:-0}"\n'}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "head.py").write_text(HEAD)
    (tmp_path / "ray.py").write_text(MODULE)
    return tmp_path


def batch(folder: Path, *words: str) -> str:
    result = run(
        folder, "parallelcluster-p5", {}, "--nodes", "2", "--no-look", "--checkpoints", f"{folder}/c", *words
    )
    assert result.exit_code == 0, result.stderr
    return result.stdout


def started(nodes: Path, **more: str) -> subprocess.CompletedProcess[str]:
    names = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_CPUS_ON_NODE": "192"}
    places = {"PATH": f"{nodes}:/usr/bin:/bin", "PYTHONPATH": str(nodes), "HOME": str(nodes)}
    own = {"STAND_IN": str(nodes), "SEEN": str(nodes / "seen")}
    text = batch(nodes).replace("export PYTHONPATH=/opt", "export PYTHONPATH=${PYTHONPATH}:/opt")
    return subprocess.run(
        ["bash", "-c", text],
        env={**names, **places, **own, **more},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_batch_script_is_clean(tmp_path: Path) -> None:
    path = f"{ROOT}/.venv/bin{os.pathsep}{os.environ['PATH']}"
    for words in ([], [*RECIPE, "7B"]):
        file = tmp_path / "train.sh"
        file.write_text(batch(tmp_path, *words))
        subprocess.run(["shellcheck", file], check=True, env={**os.environ, "PATH": path})
        subprocess.run(["shfmt", "-d", "-i", "2", "-ci", file], check=True, env={**os.environ, "PATH": path})
        for part in re.findall(r"readonly (?:LOOK|STEP)='(.*?)\n'", file.read_text(), re.DOTALL):
            subprocess.run(
                ["shellcheck", "--shell=bash", "-"], input=part, text=True, check=True,
                env={**os.environ, "PATH": path},
            )  # fmt: skip


def test_ray_is_up_on_all_nodes_before_the_program_and_ends_with_it(nodes: Path) -> None:
    done = started(nodes)
    assert done.returncode == 0, done.stderr
    seen = (nodes / "seen").read_text().splitlines()
    head, worker, stop = (next(one for one in seen if word in one) for word in ("--head", "--block", "stop"))
    assert head.startswith("localhost ") and worker.startswith("127.0.0.2 ") and stop.startswith("localhost ")
    assert "--dashboard-host=127.0.0.1" in head and "--num-gpus=8 --num-cpus=192" in head
    assert "--num-gpus=8 --num-cpus=192" in worker and "--address=localhost:2" in worker
    token = nodes / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() not in done.stdout + done.stderr + "".join(seen)


def test_the_program_says_how_the_job_ends(nodes: Path) -> None:
    assert started(nodes, ENDS="7").returncode == 7


def test_a_node_that_does_not_join_fails_the_job(nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ultracluster.jobs.scripts.pytorch_sbatch.PATIENCE_SECONDS", 2)
    done = started(nodes, BROKEN="127.0.0.2")
    assert done.returncode != 0
    assert "1 of 2 nodes are in Ray after 2 seconds" in done.stderr


def test_a_port_that_is_taken_is_left_alone(nodes: Path) -> None:
    taken = 20000 + os.getpid() % 10000
    with socket.create_server(("127.0.0.1", taken)):
        done = started(nodes)
    assert done.returncode == 0, done.stderr
    assert f"--port={taken} " not in (nodes / "seen").read_text()
