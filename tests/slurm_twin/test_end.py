"""What a twin starts ends with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from needs import need
from project import ROOT
from slurm_twin import cgroups, root
from slurm_twin.twin import PATIENCE, Twin

CODE = """
import time
from slurm_twin.twin import Twin
with Twin(1) as twin:
    print(twin.pid("ctl"), *map(twin.pid, twin.nodes), flush=True)
    time.sleep(3600)
"""


def traces() -> tuple[str, str, list[Path]]:
    """Mounts, network interfaces and control groups of this machine."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    groups = list(Path("/sys/fs/cgroup").rglob(f"{cgroups.PREFIX}{os.getpid()}-*"))
    return Path("/proc/self/mounts").read_text(), links, groups


def alive(machines: list[int]) -> list[int]:
    return [pid for pid in machines if Path(f"/proc/{pid}").exists()]


def test_nothing_is_left() -> None:
    need("ip", root=True)
    before = traces()
    try:
        with Twin(1) as twin:
            machines = [twin.pid(name) for name in ("ctl", *twin.nodes)]
            assert traces()[:2] == before[:2]
            assert alive(machines) == machines
    except root.NoTwinError as error:
        pytest.skip(str(error))

    assert not alive(machines)
    assert traces() == before
    assert not list((root.cache() / "at").iterdir())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_the_process_that_made_it(how: signal.Signals) -> None:
    try:
        root.root_of("26.05")
    except root.NoTwinError as error:
        pytest.skip(str(error))
    maker = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/support")},
    )
    assert maker.stdout
    machines = [int(pid) for pid in maker.stdout.readline().split()]
    assert len(machines) == 2

    maker.send_signal(how)
    maker.wait()
    maker.stdout.close()

    deadline = time.monotonic() + PATIENCE
    while (
        left := [pid for pid in machines if Path(f"/proc/{pid}").exists()]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
