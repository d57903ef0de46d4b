"""examples/train/train.py under a real PyTorch: trained by two processes, killed, asked, and resumed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from needs import need
from project import ROOT

PROGRAM = ROOT / "examples" / "train" / "train.py"
PYTHONS = ("/usr/bin/python3", "python3")
"""Where PyTorch may be: Debian's package `python3-torch` belongs to the system's Python, not to ours."""
SIZE = ["--batch", "8", "--context", "32", "--layers", "1", "--width", "32", "--heads", "2"]
STEP = re.compile(r"^step (\d+) loss ([\d.]+)$", re.MULTILINE)


@cache
def python() -> str | None:
    """A Python that has PyTorch."""
    for one in PYTHONS:
        found = subprocess.run([one, "-c", "import torch.distributed"], capture_output=True, check=False)
        if found.returncode == 0:
            return one
    return None


class Training:
    """Processes of one run, and what the first of them said."""

    def __init__(self, folder: Path, steps: int, *options: str, processes: int = 2, save: int = 5) -> None:
        self.said = folder / "said.txt"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        data = folder / "data.txt"
        data.write_bytes((ROOT / "README.md").read_bytes())
        command = [
            str(python()),
            str(PROGRAM),
            "--data",
            str(data),
            "--checkpoints",
            str(folder / "checkpoints"),
        ]
        command += [*SIZE, "--steps", str(steps), "--save-every", str(save), "--log-every", "1", *options]
        self.before = len(self.said.read_text()) if self.said.exists() else 0
        self.processes = [
            subprocess.Popen(
                command,
                env={
                    **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
                    "PYTHONPATH": "",
                },
                stdout=self.said.open("a"), stderr=subprocess.STDOUT,
            )
            for rank in range(processes)
        ]  # fmt: skip

    @property
    def text(self) -> str:
        return self.said.read_text()[self.before :]

    @property
    def losses(self) -> dict[int, float]:
        return {int(step): float(loss) for step, loss in STEP.findall(self.text)}

    def reached(self, step: int) -> Training:
        self._until(lambda: max(self.losses, default=0) >= step, f"step {step}")
        return self

    def ended(self) -> list[int]:
        self._until(lambda: all(one.poll() is not None for one in self.processes), "the processes to end")
        return [one.returncode for one in self.processes]

    def _until(self, true: Callable[[], bool], what: str) -> None:
        latest = time.monotonic() + 600
        while not true():
            if time.monotonic() > latest:
                self.kill()
                pytest.fail(f"waited for {what}: {self.text[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        for one in self.processes:
            one.kill()
            one.wait()


@pytest.fixture(autouse=True)
def _torch() -> None:
    if python() is None:
        need("python3-torch")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run that nobody disturbs."""
    if python() is None:
        need("python3-torch")
    training = Training(tmp_path_factory.mktemp("whole"), 40)
    assert training.ended() == [0, 0], training.text
    return training


@pytest.fixture(scope="module")
def whole(trained: Training) -> dict[int, float]:
    """Its losses."""
    return trained.losses


def test_it_learns(whole: dict[int, float]) -> None:
    assert sorted(whole) == list(range(1, 41))
    assert whole[40] < whole[1] - 0.5


def test_killed_in_the_middle_it_goes_on_to_the_same_losses(whole: dict[int, float], tmp_path: Path) -> None:
    first = Training(tmp_path, 10_000).reached(12)
    first.processes[1].send_signal(signal.SIGKILL)  # a node is lost; the other process waits for it in vain
    first.kill()
    again = Training(tmp_path, 40)
    assert again.ended() == [0, 0], again.text
    begun = int(re.findall(r"from step (\d+)$", again.text, re.MULTILINE)[0])
    assert begun >= 10 and begun % 5 == 0
    assert again.losses == {step: loss for step, loss in whole.items() if step > begun}


@pytest.mark.parametrize("asked", [signal.SIGUSR1, signal.SIGTERM])
def test_who_asks_one_process_gets_a_checkpoint_and_an_end_of_all(
    asked: signal.Signals, whole: dict[int, float], tmp_path: Path
) -> None:
    training = Training(tmp_path, 10_000, save=100_000).reached(3)
    training.processes[1].send_signal(asked)
    assert training.ended() == [0, 0], training.text
    saved = sorted(file.name for file in (tmp_path / "checkpoints").iterdir())
    step = int(re.findall(r"asked to stop: step (\d+) is saved", training.text)[0])
    assert saved == [f"step-{step:08}.pt"]
    for number in set(training.losses) & set(whole):
        assert training.losses[number] == whole[number]


def test_a_torn_checkpoint_costs_the_steps_since_the_one_before(trained: Training, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(trained.said.parent / "checkpoints", folder)
    assert sorted(file.name for file in folder.iterdir()) == [f"step-{step:08}.pt" for step in (30, 35, 40)]
    newest = folder / "step-00000040.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    (folder / "step-00000045.pt.tmp").write_bytes(b"half")
    again = Training(tmp_path, 40)
    assert again.ended() == [0, 0], again.text
    assert "cannot be read" in again.text and "from step 35" in again.text
    assert again.losses == {step: loss for step, loss in trained.losses.items() if step > 35}


def test_another_number_of_processes_sees_the_same_batches(whole: dict[int, float], tmp_path: Path) -> None:
    """Rounding differs: gradients are added in another order."""
    training = Training(tmp_path, 20, processes=1)
    assert training.ended() == [0], training.text
    assert training.losses == pytest.approx({step: whole[step] for step in range(1, 21)}, abs=2e-3)


@pytest.mark.parametrize(
    ("processes", "options", "told"),
    [
        (2, ["--batch", "7"], "--batch 7: requires a multiple of the 2 processes"),
        (1, ["--data", "/nowhere.txt"], "--data /nowhere.txt: requires a file of more than 33 bytes"),
    ],
)
def test_what_cannot_be_trained_is_told(
    processes: int, options: list[str], told: str, tmp_path: Path
) -> None:
    training = Training(tmp_path, 20, *options, processes=processes)
    assert training.ended() == [1] * processes
    assert told in training.text
