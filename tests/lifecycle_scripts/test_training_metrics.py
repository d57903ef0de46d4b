"""What a training program tells about itself: real processes, files and pages, and what must not stop it."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from needs import path_of
from project import ROOT

from ultracluster.catalog.metrics import metrics as catalogue

FILE = ROOT / "lifecycle_scripts" / "files" / "ultracluster_metrics.py"


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


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, as new, in a process that is no job; it writes into `tmp_path`."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI", "ULTRACLUSTER_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ULTRACLUSTER_METRICS_FOLDER", str(tmp_path))
    spec = importlib.util.spec_from_file_location("ultracluster_metrics_of_test", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(text: str, folder: Path, **environment: str) -> list[str]:
    """A program of a user, which finds the module beside it; figures are written every 20 ms."""
    shutil.copy(FILE, folder)
    program = folder / "train.py"
    program.write_text(
        "import os, sys, time\nimport ultracluster_metrics as metrics\n"
        "import ultracluster_metrics as module\nmodule.WRITE_SECONDS = 0.02\nmodule.PROGRESS_SECONDS = 0.02\n"
        + text
    )
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    (folder / "environment.json").write_text(json.dumps({**kept, **environment}))
    return [sys.executable, str(program)]


def ran(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = script(text, folder, **environment)
    env = json.loads((folder / "environment.json").read_text())
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=env, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done


def told(folder: Path, name: str = "local.0.json") -> dict[str, Any]:
    return json.loads((folder / name).read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def page(port: int) -> str:
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()


def judged(text: str) -> None:
    promtool = path_of("promtool")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stderr + done.stdout == "", done.stdout + done.stderr


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


LOOP = """
import types
clock = [1000.0]
module.time = types.SimpleNamespace(**{**vars(time), "perf_counter": lambda: clock[0]})
metrics.start()
for number in range(FIRST, LAST):
    with metrics.step(number, tokens=5):
        clock[0] += 1
END
"""
WRITTEN = """
import json
def step_in(name):
    try:
        with open(name) as file:
            return json.load(file)["training"]["step"]
    except (OSError, ValueError, KeyError):
        return None
def wait_for(step, *names):
    while [step_in(name) for name in names] != [step] * len(names):
        time.sleep(0.01)
"""


def loop(first: int, last: int, end: str = "metrics.stop()") -> str:
    return LOOP.replace("FIRST", str(first)).replace("LAST", str(last)).replace("END", end)


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


# What must not stop a training


def test_nothing_raises(metrics: ModuleType) -> None:
    class Awkward:
        def __float__(self) -> float:
            raise RuntimeError("no")

        __int__ = __index__ = __str__ = __float__  # type: ignore[assignment]

    metrics.start(nonsense=1, rank="x", port="y", folder=3, accelerators=Awkward())
    metrics.step_done(Awkward(), tokens=Awkward(), loss=Awkward())
    with metrics.step("seven", tokens=None):
        pass
    metrics.loss("much")
    metrics.first_token("soon", Awkward())
    metrics.next_token(None)
    metrics.request(Awkward()).token()
    metrics.stop()
    assert metrics._METRICS.errors > 0


@pytest.mark.parametrize("folder", ["/proc/nothing", "/dev/full", "/dev/null/x"])
def test_a_folder_that_takes_nothing(folder: str, tmp_path: Path) -> None:
    failed = "while not module._METRICS.errors:\n  time.sleep(0.01)"
    ran(loop(0, 5, failed), tmp_path, ULTRACLUSTER_METRICS_FOLDER=folder)


def test_a_full_disk_leaves_the_file_before(
    metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics.step_done(1)
    metrics.stop()

    def full(document: Any, file: Any) -> None:
        file.write('{"vers')
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(metrics.json, "dump", full)
    metrics.step_done(2)
    metrics.stop()
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["local.0.json"]
    assert told(tmp_path)["training"]["step"] == 1
    assert metrics._METRICS.errors


def test_a_link_that_somebody_laid_is_not_written_through(metrics: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / ".local.0.json.tmp").symlink_to(tmp_path / "victim")
    (tmp_path / "local.0.json").symlink_to(tmp_path / "victim")
    metrics.step_done(1)
    metrics.stop()
    assert (tmp_path / "victim").read_text() == "kept"
    assert told(tmp_path)["training"]["step"] == 1


def test_a_file_system_of_checkpoints_that_hangs(tmp_path: Path) -> None:
    """A named pipe that nobody reads blocks who opens it, as Lustre does without its servers."""
    (tmp_path / "figures").mkdir()
    text = (
        "import threading\nreading = threading.Event()\n"
        "module._read_step = lambda path: (reading.set(), time.sleep(3600))\n"
        + loop(0, 5, "reading.wait()\nmetrics.stop()\n")
        + "assert not module._METRICS.errors\n"
    )
    ran(text, tmp_path, ULTRACLUSTER_METRICS_FOLDER=str(tmp_path / "figures"), CHECKPOINTS=str(tmp_path))
    assert told(tmp_path / "figures")["training"]["step"] == 4


def test_the_program_ends_at_once_while_the_thread_sleeps(tmp_path: Path) -> None:
    ran("module.WRITE_SECONDS = 3600\nmetrics.step_done(1)\n", tmp_path)


def test_forked_workers_tell_nothing_and_hold_no_port(tmp_path: Path) -> None:
    port = free_port()
    text = f"""
import multiprocessing, threading, urllib.request
metrics.start(port={port}, job_id="6")
metrics.step_done(41)
while not module._METRICS._server:
    time.sleep(0.01)
def load(numbers):
    assert module._METRICS._server is None and not module._METRICS._running
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
    numbers.put(7)
    time.sleep(3600)
context = multiprocessing.get_context("fork")
numbers = context.Queue()
worker = context.Process(target=load, args=(numbers,), daemon=True)
worker.start()
assert numbers.get(timeout=300) == 7
module._METRICS.stop()
with module.socketserver.socket.socket() as probe:  # the worker lives on, and does not have it
    probe.bind(("", {port}))
worker.kill()
"""
    ran(text, tmp_path, ULTRACLUSTER_METRICS_FOLDER=str(tmp_path))
    assert told(tmp_path, "6.0.json")["training"]["step"] == 41


def test_a_forked_trainer_begins_anew(tmp_path: Path) -> None:
    text = f"""{WRITTEN}
metrics.start(job_id="6")
metrics.step_done(41)
if os.fork() == 0:
    os.environ["RANK"] = "1"
    metrics.step_done(3)
    wait_for(3, {str(tmp_path / "6.1.json")!r})
    os._exit(0)
assert os.wait()[1] == 0
wait_for(41, {str(tmp_path / "6.0.json")!r})
"""
    ran(text, tmp_path, ULTRACLUSTER_METRICS_FOLDER=str(tmp_path))
    assert told(tmp_path, "6.0.json")["training"]["step"] == 41
    assert told(tmp_path, "6.1.json")["training"]["step"] == 3


def test_a_signal_that_saves_comes_in_the_midst_of_a_step(metrics: ModuleType) -> None:
    """The handler runs in the same thread, perhaps while it adds up: it must not wait for itself."""
    finish = metrics._METRICS._steps

    class Interrupted(type(finish)):
        def append(self, item: Any) -> None:
            with metrics.checkpoint():
                super().append(item)

    metrics._METRICS._steps = Interrupted(maxlen=8)
    done = threading.Thread(target=lambda: metrics.step_done(1), daemon=True)
    done.start()
    done.join(300)
    assert not done.is_alive()
    assert metrics._METRICS.told()["training"]["step"] == 1


def test_threads_add_up(metrics: ModuleType) -> None:
    def tell() -> None:
        for _ in range(2000):
            metrics.next_token(0.1, "m")
            metrics._METRICS._waited(0.0, 0.001, True)

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert metrics._METRICS.told()["inference"]["m"]["inter_token_seconds"]["count"] == 16000
    assert metrics._METRICS._wait == pytest.approx(16.0)


def test_a_clock_that_jumps_changes_no_duration(metrics: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.start()
    monkeypatch.setattr(metrics.time, "time", lambda: 0.0)
    with metrics.step(1):
        time.sleep(0.001)
    training = metrics._METRICS.told()["training"]
    assert 0.001 <= training["step_seconds"] < 3600
    assert 0 < training["lost_seconds_total"]["startup"] < 3600 * 24


def test_memory_and_file_are_bounded(metrics: ModuleType, tmp_path: Path) -> None:
    for number in range(20_000):
        metrics.step_done(number, tokens=1)
        metrics.first_token(0.1, f"{number}-{'m' * 500}")
    metrics.stop()
    assert len(metrics._METRICS._steps) == 4096
    assert (tmp_path / "local.0.json").stat().st_size < metrics.MOST_BYTES


def test_it_works_without_torch_and_loads_no_server(tmp_path: Path) -> None:
    ran("metrics.step_done(1)\nassert not {'torch', 'http.server', 'numpy'} & set(sys.modules)\n", tmp_path)


# The page


def test_one_process_of_a_pod_answers_for_all(tmp_path: Path) -> None:
    """Two ranks ask for one port; promtool reads the page; when that process is killed, the other answers."""
    port = free_port()
    environment = {
        "ULTRACLUSTER_METRICS_PORT": str(port),
        "ULTRACLUSTER_JOB_ID": "llama",
        "ULTRACLUSTER_METRICS_FOLDER": str(tmp_path),
        "WORLD_SIZE": "2",
        "ULTRACLUSTER_ACCELERATOR": "h100",
    }
    text = (
        "metrics.start(flops_per_token=6e9)\n"
        "import itertools\nfor number in itertools.count():\n"
        "  time.sleep(0.005)\n  metrics.step_done(number, tokens=9, loss=1)\n"
        '  metrics.first_token(0.2, "a \\"b\\" \\\\ c")\n'
    )
    command = script(text, tmp_path, **environment)
    env = json.loads((tmp_path / "environment.json").read_text())
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        ranks.append(subprocess.Popen(command, env={**env, "RANK": "0"}))
        read = until(lambda: page(port), lambda text: 'mfu_ratio{job_id="llama",rank="0"}' in text)
        ranks.append(subprocess.Popen(command, env={**env, "RANK": "1"}))
        read = until(lambda: page(port), lambda text: 'step{job_id="llama",rank="1"}' in text)
        judged(read)
        assert 'loss{job_id="llama",rank="1"}' not in read
        for key in ("step", "step_seconds", "compute_seconds", "wait_seconds"):
            assert len(re.findall(rf"^ultracluster_training_{key}{{", read, re.MULTILINE)) == 2
        ranks[0].kill()
        ranks[0].wait()
        read = until(lambda: page(port), lambda text: 'rank="1"' in text)
        judged(read)
    finally:
        for one in ranks:
            one.kill()
            one.wait()


def until(ask: Any, fits: Any, seconds: float = 300) -> str:
    end = time.monotonic() + seconds
    found = ""
    while time.monotonic() < end:
        try:
            found = ask()
        except OSError:
            found = ""
        if fits(found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_foreign_files_cost_only_themselves(metrics: ModuleType, tmp_path: Path) -> None:
    good = {"version": 1, "job_id": "1", "rank": 3, "training": {"step": 4}, "inference": {}}
    (tmp_path / "1.3.json").write_text(json.dumps(good))
    (tmp_path / "1.4.json").write_text(json.dumps({**good, "rank": 4, "training": {"step": "4\nx 1"}}))
    (tmp_path / "1.5.json").write_text(json.dumps(good))  # says that it is another
    (tmp_path / "1.6.json").write_text("{")
    (tmp_path / "old.7.json").write_text(json.dumps({**good, "job_id": "old", "rank": 7}))
    os.utime(tmp_path / "old.7.json", (1, 1))
    os.mkfifo(tmp_path / "1.8.json")
    metrics.step_done(9)
    text = metrics._METRICS.exposition()
    judged(text)
    rows = [line for line in text.splitlines() if line.startswith("ultracluster_training_step{")]
    assert rows == [
        'ultracluster_training_step{job_id="1",rank="3"} 4.0',
        'ultracluster_training_step{job_id="local",rank="0"} 9.0',
    ]


def test_a_client_that_says_nothing_keeps_nobody_for_long(metrics: ModuleType) -> None:
    port = free_port()
    metrics.start(port=port)
    until(lambda: page(port) or "up", bool)
    with socket.create_connection(("127.0.0.1", port)):
        metrics.step_done(5)
        assert "step" in until(lambda: page(port), lambda text: "ultracluster_training_step" in text)
    metrics.stop()


@pytest.mark.parametrize("path", ["/", "/metricsx", "/../etc/passwd"])
def test_only_one_page(metrics: ModuleType, path: str) -> None:
    port = free_port()
    metrics.start(port=port)
    until(lambda: page(port) or "up", bool)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60)
    metrics.stop()


def test_a_pod_without_our_folder_has_one_in_its_shared_memory(
    metrics: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ULTRACLUSTER_METRICS_FOLDER")
    monkeypatch.setattr(metrics, "FOLDER", tmp_path / "none")
    assert metrics._METRICS._folder() is None, "nobody asks for figures"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ULTRACLUSTER_METRICS_PORT", str(free.getsockname()[1]))
    real, only = Path.mkdir, [""]

    def mkdir(path: Path, *given: Any, **more: Any) -> None:
        if not str(path).startswith(only[0]):
            raise OSError(30, "Read-only file system")
        real(path, *given, **more)

    monkeypatch.setattr(metrics.pathlib.Path, "mkdir", mkdir)
    monkeypatch.setattr(metrics.tempfile, "gettempdir", lambda: str(tmp_path))
    own = f"ultracluster-metrics-{os.getuid()}"
    for only[0] in ("/dev/shm", str(tmp_path)):  # noqa: S108
        assert metrics._METRICS._folder() == Path(only[0], own)
    (tmp_path / own).chmod(0o777)
    assert metrics._METRICS._folder() is None, "others could write there"
    metrics.step_done(3)
    assert "ultracluster_training_step" in metrics._METRICS.exposition()
    metrics.stop()


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
