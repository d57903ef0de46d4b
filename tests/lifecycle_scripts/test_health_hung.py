"""A look whose tool hangs, with real processes: it ends in time, holds no pipe, and is not started twice.

A process that the kernel does not end, as one that waits for a dead GPU, is made with a freezer of cgroup v1,
where the machine has one: what is frozen there does not even take SIGKILL. Elsewhere the tool stops itself,
which SIGKILL ends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def freezer() -> Iterator[Path | None]:
    """A group of its own, thawed at the end; None where there is none."""
    group = FREEZER / f"ultracluster-health-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        until(lambda: not (group / "tasks").read_text(), "the processes of the group are there")
        group.rmdir()


def until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def look(home: Path, root: Path, seconds: str, **environment: str) -> dict[str, Any]:
    """Its answer. The pipe is read to its end: what is left behind, for an hour, must not keep it."""
    done = subprocess.run(
        ["bash", home / "lib" / "run_check.sh", "gpu_count", "quick", seconds],
        env=os.environ | {"ULTRACLUSTER_ROOT": str(root)} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The scripts, whose checks a test may write anew, and below `root` a node."""
    home, root = tmp_path / "scripts", tmp_path / "root"
    for folder in ("lib", "health"):
        shutil.copytree(ROOT / "lifecycle_scripts" / folder, home / folder)
    (root / "var/lib/ultracluster/health").mkdir(parents=True)
    (root / "var/lib/ultracluster/health/node").write_text("NODE_ACCELERATOR_NAME=H100\n")
    return home


def test_what_a_check_starts_and_forgets_ends_with_it(home: Path, tmp_path: Path) -> None:
    """Else a look every minute would fill a node with what hangs behind it."""
    (home / "health" / "gpu_count.sh").write_text(
        "gpu_count::applies() { :; }\n"
        f"gpu_count::quick() {{ sleep 3600 & echo $! >'{tmp_path}/left'; health::ok well; }}\n"
    )
    assert look(home, tmp_path / "root", "600")["result"] == "ok"
    left = Path("/proc") / (tmp_path / "left").read_text().strip() / "stat"
    until(lambda: not _runs(left), "it still runs")


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_tool_that_hangs(home: Path, tmp_path: Path, freezer: Path | None) -> None:
    root = tmp_path / "root"
    hangs = (
        f"echo $$ >{freezer}/tasks; echo FROZEN >{freezer}/freezer.state; sleep 3600"
        if freezer
        else "kill -STOP $$; sleep 3600"
    )
    (home / "health" / "gpu_count.sh").write_text(
        "gpu_count::applies() { :; }\n"
        f"gpu_count::quick() {{ echo asked >>'{tmp_path}/asked'; bash -c '{hangs}'; health::ok well; }}\n"
    )
    # long enough for the check to begin on a busy machine
    found = look(home, root, "5", ULTRACLUSTER_HEALTH_DEAD_SECONDS="600")
    assert (found["result"], found["code"]) == ("unknown", "hung" if freezer else "late")
    if freezer is None:
        return
    # the next one, as a prolog a minute later
    found = look(home, root, "600", ULTRACLUSTER_HEALTH_DEAD_SECONDS="600")
    assert (found["result"], found["code"]) == ("unknown", "hung")
    found = look(home, root, "600", ULTRACLUSTER_HEALTH_DEAD_SECONDS="0")
    assert (found["result"], found["code"], found["action"]) == ("critical", "hung", "reboot")
    assert (tmp_path / "asked").read_text() == "asked\n", "one hangs, and another was started"
    # what hung has ended: nothing of it remains
    (freezer / "freezer.state").write_text("THAWED")
    until(lambda: not (freezer / "tasks").read_text(), "what was thawed still runs")
    (home / "health" / "gpu_count.sh").write_text(
        "gpu_count::applies() { :; }\ngpu_count::quick() { health::ok well; }\n"
    )
    assert look(home, root, "600")["result"] == "ok"
    assert not list((root / "run/ultracluster/health").glob("*.hung"))
