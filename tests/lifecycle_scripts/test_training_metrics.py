"""What a training program tells about itself: real processes, files and pages, and what must not stop it."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from project import ROOT
from training_program import FILE, WRITTEN, judged, loop, ran, script, told

from ultracluster.catalog.metrics import metrics as catalogue


def _pythons() -> list[str]:
    """Every Python >= 3.9 of this machine that starts (a version manager's stand-ins may not)."""
    named = [shutil.which(f"python3.{minor}") for minor in range(9, 16)]
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    named += [
        str(path) for minor in range(9, 16) for path in managed.glob(f"3.{minor}.*/bin/python3.{minor}")
    ]

    def starts(path: str) -> bool:
        return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0

    return sorted({path for path in named if path and starts(path)})


# The language


def test_python_3_9_reads_it_and_it_needs_only_the_standard_library() -> None:
    tree = ast.parse(FILE.read_text(), feature_version=(3, 9))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module
            imported.add(node.module.partition(".")[0])
        # newer than 3.9, though the grammar lets them pass
        if isinstance(node, ast.Call):
            assert not {"strict", "slots", "kw_only"} & {keyword.arg for keyword in node.keywords}
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _types(node))
    assert imported <= set(sys.stdlib_module_names) - {"tomllib"}


def _types(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right))


@pytest.mark.parametrize("python", _pythons())
def test_each_python_of_this_machine_runs_it(python: str, tmp_path: Path) -> None:
    text = "with metrics.step(1, tokens=10):\n  pass\nmetrics.stop()\nassert module._METRICS.errors == 0\n"
    command = script(text, tmp_path)
    env = {"ULTRACLUSTER_METRICS_FOLDER": str(tmp_path)}
    subprocess.run([python, "-I", "-W", "error", "-c", (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runpy; runpy.run_path({command[1]!r})"
    )], check=True, env=env, timeout=600)  # fmt: skip
    assert told(tmp_path)["training"]["step"] == 1


def test_it_lies_beside_the_example_with_the_same_bytes() -> None:
    copies = list(ROOT.glob("examples/**/ultracluster_metrics.py"))
    assert copies
    stale = [path for path in copies if path.read_bytes() != FILE.read_bytes()]
    assert not stale, f"cp {FILE} over {stale}"


# The figures


def test_a_step_its_waiting_and_its_tokens(metrics: ModuleType, tmp_path: Path) -> None:
    metrics.start(flops_per_token=6e9, accelerator="H100", accelerators=4, job_id="77")
    for number in range(10, 13):
        with metrics.step(number, tokens=1000):
            time.sleep(0.02)
            with metrics.waiting():
                time.sleep(0.03)
    metrics.loss(2.5)
    metrics.stop()
    document = told(tmp_path, "77.0.json")
    training = document["training"]
    assert document["version"] == 1 and document["job_id"] == "77" and document["rank"] == 0
    assert training["step"] == 12 and training["loss"] == 2.5
    assert training["wait_seconds"] >= 0.03 and training["compute_seconds"] >= 0.02
    assert training["step_seconds"] == pytest.approx(
        training["compute_seconds"] + training["wait_seconds"], rel=1e-6
    )
    assert training["tokens_per_second"] == pytest.approx(1000 / training["step_seconds"], rel=1e-6)
    rate = training["tokens_per_second"]
    assert training["mfu_ratio"] == pytest.approx(6e9 * rate / (4 * 989e12), rel=1e-6)
    assert training["useful_seconds_total"] == pytest.approx(3 * training["step_seconds"], rel=1e-6)
    assert training["lost_seconds_total"]["startup"] > 0
    assert training["lost_seconds_total"]["repeated"] == 0


def test_what_is_unknown_is_left_out(metrics: ModuleType, tmp_path: Path) -> None:
    with metrics.step():
        pass
    metrics.stop()
    training = told(tmp_path)["training"]
    assert training["step"] == 0
    assert not {"loss", "mfu_ratio", "tokens_per_second", "checkpoint_seconds"} & set(training)


def test_mfu_needs_a_known_peak(metrics: ModuleType, tmp_path: Path) -> None:
    metrics.start(flops_per_token=6e9, accelerator="abacus", accelerators=1)
    with metrics.step(1, tokens=5):
        time.sleep(0.001)
    metrics.stop()
    assert "mfu_ratio" not in told(tmp_path)["training"]
    metrics.start(peak_flops=1e12)
    metrics.stop()
    assert told(tmp_path)["training"]["mfu_ratio"] > 0


def test_steps_without_a_context(metrics: ModuleType, tmp_path: Path) -> None:
    metrics.start()
    for number in range(3):
        time.sleep(0.01)
        if number == 1:
            with metrics.checkpoint():
                time.sleep(1)
        metrics.step_done(number, tokens=7, loss=number)
    metrics.stop()
    training = told(tmp_path)["training"]
    assert training["step"] == 2 and training["loss"] == 2
    assert training["checkpoint_seconds"] >= 1
    assert training["step_seconds"] < training["checkpoint_seconds"], "a checkpoint is no step time"
    assert training["lost_seconds_total"]["checkpoint"] >= 1


def test_a_step_that_fails_does_not_count_and_its_error_is_the_programs(metrics: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError), metrics.step(1):
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), metrics.checkpoint():
        _ = 1 / 0
    assert metrics._METRICS.told()["training"] == {}


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (-1e999, "-Inf")])
def test_a_loss_that_is_no_number_is_told_as_such(
    metrics: ModuleType, tmp_path: Path, value: float, text: str
) -> None:
    metrics.step_done(1, loss=value)
    metrics.stop()
    assert told(tmp_path)["training"]["loss"] == text
    page = metrics._METRICS.exposition()
    assert 'ultracluster_training_loss_finite{job_id="local",rank="0"} 0.0' in page
    assert "ultracluster_training_loss{" not in page


def test_only_the_first_rank_tells_of_the_job(
    metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "9")
    monkeypatch.setenv("SLURM_PROCID", "1")  # the node's task, not the rank
    monkeypatch.setenv("SLURM_JOB_ID", "512")
    metrics.step_done(1, tokens=7, loss=3)
    metrics.stop()
    assert set(told(tmp_path, "512.9.json")["training"]) == {
        "step", "step_seconds", "compute_seconds", "wait_seconds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "local.0.json"),
        ({"SLURM_JOB_ID": "5", "SLURM_PROCID": "3"}, "5.3.json"),
        ({"OMPI_COMM_WORLD_RANK": "4", "SLURM_PROCID": "3", "SLURM_JOB_ID": "5"}, "5.4.json"),
        ({"ULTRACLUSTER_JOB_ID": "llama/8b run", "RANK": "x"}, "llama-8b-run.0.json"),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": ""}, "local.0.json"),
        ({"ULTRACLUSTER_JOB_ID": "../../etc"}, "------etc.0.json"),
    ],
)
def test_who_it_is(
    metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: Any, name: str
) -> None:
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    metrics.step_done(1)
    metrics.stop()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_requests_as_histograms(metrics: ModuleType, tmp_path: Path) -> None:
    one = metrics.request("llama")
    for _ in range(4):
        one.token()
    metrics.first_token(0.3, "llama")
    metrics.first_token(float("nan"), "llama")
    metrics.next_token(-1, "llama")
    for number in range(60):
        metrics.first_token(99.0, f"model {number}")
    metrics.stop()
    requests = told(tmp_path)["inference"]
    first = requests["llama"]["time_to_first_token_seconds"]
    assert first["count"] == 2 and first["buckets"][3] == [0.3, 2] and first["sum"] >= 0.3
    assert requests["llama"]["inter_token_seconds"]["count"] == 3
    assert len(requests) == 21 and requests["other"]["time_to_first_token_seconds"]["count"] == 41
    assert requests["other"]["time_to_first_token_seconds"]["buckets"][-1] == [60.0, 0]
    judged(metrics._METRICS.exposition())


# Time that is lost


@pytest.mark.parametrize("kept", ["node", "checkpoints"])
def test_steps_that_are_done_again_are_lost(kept: str, tmp_path: Path) -> None:
    """A process is killed at step 30 and goes on from its checkpoint at 20: ten steps are lost, no more."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "checkpoints").mkdir()
    environment = {"ULTRACLUSTER_METRICS_FOLDER": str(tmp_path / "figures"), "SLURM_JOB_ID": "8"}
    if kept == "checkpoints":
        environment["CHECKPOINTS"] = str(tmp_path / "checkpoints")
    files = [str(tmp_path / "figures/8.0.json")]
    if kept == "checkpoints":
        files.append(str(tmp_path / "checkpoints/.ultracluster-progress.json"))
    killed = f"{WRITTEN}\nwait_for(30, *{files})\nos.kill(os.getpid(), 9)"
    command = script(loop(0, 31, killed), tmp_path, **environment)
    done = subprocess.run(command, env={**os.environ, **environment}, timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL
    assert told(tmp_path / "figures", "8.0.json")["training"]["step"] == 30
    if kept == "checkpoints":  # it goes on as another job, on another node
        environment["SLURM_JOB_ID"] = "9"
        assert told(tmp_path / "checkpoints", ".ultracluster-progress.json")["training"] == {"step": 30}
    ran(loop(21, 51), tmp_path, **environment)
    training = told(tmp_path / "figures", f"{environment['SLURM_JOB_ID']}.0.json")["training"]
    assert training["step"] == 50
    assert training["lost_seconds_total"]["repeated"] == 10
    assert training["useful_seconds_total"] == 20


def test_numbers_of_our_own_are_no_steps_done_again(metrics: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "4.0.json").write_text(json.dumps({"version": 1, "training": {"step": 1000}}))
    metrics.start(job_id="4")
    with metrics.step():
        pass
    assert metrics._METRICS.told()["training"]["lost_seconds_total"]["repeated"] == 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"training": {"step": "9"}}', '{"training": {"step": -4}}', "\0"]
)
def test_garbage_of_before_is_no_progress(metrics: ModuleType, tmp_path: Path, text: str) -> None:
    (tmp_path / "4.0.json").write_text(text)
    metrics.step_done(1)
    metrics._METRICS._given["job_id"] = "4"
    assert metrics._read_step(tmp_path / "4.0.json") is None


def test_the_example_tells_its_steps(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "ULTRACLUSTER_METRICS_FOLDER": str(tmp_path),
        "WORLD_SIZE": "2",
    }
    environment |= {"SLURM_JOB_ID": "31", "ULTRACLUSTER_ACCELERATOR": "h100"}
    program = ROOT / "examples" / "training" / "train.py"
    subprocess.run([sys.executable, "-B", program], env=environment, check=True, timeout=600)
    training = told(tmp_path, "31.0.json")["training"]
    assert training["step"] == 19 and training["mfu_ratio"] > 0 and training["loss"] == 10 / 16


def test_the_page_has_the_names_of_the_catalogue_and_of_the_nodes_collector(
    metrics: ModuleType, tmp_path: Path
) -> None:
    metrics.start(flops_per_token=6e9, accelerator="h100", accelerators=1)
    with metrics.step(3, tokens=100):
        time.sleep(0.001)
    with metrics.checkpoint():
        pass
    metrics.loss(2.0)
    request = metrics.request("m")
    request.token()
    request.token()
    lines = metrics._METRICS.exposition().splitlines()
    typed = {words[2]: words[3] for words in map(str.split, lines) if words[:2] == ["#", "TYPE"]}
    own = {
        name: one
        for name, one in catalogue().items()
        if one.exporter == "collectors/training" and "files_refused" not in name
    }
    assert typed == {name: one.type for name, one in own.items()}
    for line in lines:
        if not line.startswith("#"):
            name, labels = re.match(r"(\w+)\{(.*)\} ", line).groups()  # type: ignore[union-attr]
            keys = set(re.findall(r'(\w+)="', labels)) - {"le"}
            assert keys == set(own[re.sub("_(bucket|sum|count)$", "", name)].labels)


def test_several_threads_start_it_once(metrics: ModuleType) -> None:
    before, gate = set(threading.enumerate()), threading.Barrier(8)

    def begin() -> None:
        gate.wait()
        with metrics.step():
            pass

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    started = [one.name for one in set(threading.enumerate()) - before]
    assert started.count("ultracluster-metrics") == 1
    metrics.stop()
