"""What must not stop a training program that reports itself: full disks, forks, signals, strangers' files."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from training_program import WRITTEN, free_port, judged, loop, page, ran, script, told, until

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
