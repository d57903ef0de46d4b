"""A training program that reports itself: its text, its files and its page."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from needs import path_of
from project import ROOT

FILE = ROOT / "lifecycle_scripts" / "files" / "ultracluster_metrics.py"

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
