"""Parts of a training job's script: what a node says that it lacks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ultracluster.jobs.scripts.script_parts import LOOK, NEURON_LOOK


@pytest.fixture
def look(tmp_path: Path) -> str:
    """What a node runs, with GPUs and EFA interfaces of a folder."""
    (found,) = re.findall(r"readonly LOOK='(.*?)\n'", LOOK, re.DOTALL)
    for index in range(3):
        driver = tmp_path / "sys" / f"rdmap{index}" / "device"
        driver.mkdir(parents=True)
        (driver / "driver").symlink_to(tmp_path / ("efa" if index else "mlx5_core"))
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'GPU 0: H100'; echo 'GPU 1: H100'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    return found.replace("/sys/class/infiniband", str(tmp_path / "sys"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "neuron", "interfaces", "shared", "lacks"),
    [
        ("2", "", "2", "", ""),
        ("0", "", "0", "/tmp", ""),  # noqa: S108 - is there
        ("8", "", "3", "/none", "2 of 8 GPUs 2 of 3 EFA interfaces an answer from /none"),
        ("0", "4", "2", "", ""),
        ("0", "16", "3", "", "4 of 16 Neuron devices 2 of 3 EFA interfaces"),
    ],
)
def test_a_node_says_what_it_lacks(
    look: str, tmp_path: Path, gpus: str, neuron: str, interfaces: str, shared: str, lacks: str
) -> None:
    for index in range(4):
        (tmp_path / f"neuron{index}").touch()
    devices = NEURON_LOOK.replace("/dev/", f"{tmp_path}/").replace("@devices@", neuron) if neuron else ""
    look = look.replace("@neuron@", devices)
    for key, value in (("gpus", gpus), ("interfaces", interfaces), ("shared", shared)):
        look = look.replace(f"@{key}@", value)
    done = subprocess.run(
        ["bash", "-c", look],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURMD_NODENAME": "n1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == ((1, f"n1 lacks: {lacks}\n") if lacks else (0, ""))
