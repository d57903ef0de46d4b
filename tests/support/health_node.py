"""A node in a folder, for the health loop: checks as a test has them, and a Slurm that keeps its calls."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT

LOOP = ROOT / "lifecycle_scripts" / "health_loop"
ENFORCE = {"mode": "enforce", "orchestrator": "pcs", "replace": True, "fresh_seconds": 0}
FAULT = '{"check": "gpu", "result": "critical", "code": "lost", "detail": "x", "action": "replace"}'
SLURM = """#!/bin/sh
cd '{state}' && echo "$*" >>calls
[ ! -e hangs ] || exec sleep 3600
[ ! -e fails ] || { echo 'slurm_load_node error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
case " $* " in
  *' reservation '*) [ ! -e locked ] || { echo 'Error creating the reservation: Duplicate reservation name' >&2; exit 1; } ;;
  *' config '*) ;;
  *' show '*) cat nodes ;;
esac
"""  # noqa: E501
PYTHON = f"""#!/bin/sh
shift
exec '{sys.executable}' -ISB -c '
import runpy, sys, time
clock = time.monotonic
time.monotonic = lambda: clock() / '"$SLOWER"'
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@"
"""
"""The loop's own clock goes slower than this machine's, which has other work."""
TIMEOUT = f"""#!/bin/sh
shift
limit=$(($1 * SLOWER))
shift
exec {shutil.which("timeout")} --kill-after=10 "$limit" "$@"
"""


class Node:
    """A node in a folder: the loop, checks as a test has them, and a `scontrol` that keeps its calls."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "root", folder / "state"
        self.home = self.root / "opt/ultracluster/health"
        self.bin = folder / "bin"
        for one in (self.home / "health", self.home / "lib", self.state, self.bin, self.root / "proc"):
            one.mkdir(parents=True)
        (self.home / "loop").symlink_to(LOOP)
        # without the time of the real one, which ends what hangs: the fixture does it
        self.started = folder / "started"
        (self.home / "lib/run_check.sh").write_text(
            f'echo "$$" >>"{self.started}"\nexec bash "$ULTRACLUSTER_HOME/health/$1.sh"\n'
        )
        self.nodes("IDLE")
        slurm = dict.fromkeys(("scontrol", "squeue", "scancel"), SLURM.replace("{state}", str(self.state)))
        for name, text in (slurm | {"python3": PYTHON, "timeout": TIMEOUT}).items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.settings(ENFORCE)

    def nodes(self, states: str, rest: str = "") -> None:
        others = "".join(f"NodeName=o{n} Arch=x86_64 State=IDLE Comment=\n" for n in range(9))
        (self.state / "nodes").write_text(
            f"NodeName=n1 Arch=x86_64 State={states} ThreadsPerCore=1{rest}\n{others}"
        )

    def settings(self, told: object) -> None:
        text = told if isinstance(told, str) else json.dumps(told)
        (self.home / "settings.json").write_text(text)

    def check(self, name: str, code: str) -> None:
        (self.home / "health" / f"{name}.sh").write_text(f"{code}\n")

    def run(self, verb: str, *, slower: int = 30, **environment: str) -> int:
        """Status of the verb.

        Args:
            slower: by how much its clock is. What hangs for it, hangs so much longer.
        """
        script = LOOP / f"{verb}.sh"
        command = [script] if script.exists() else [self.bin / "python3", "-ISB", LOOP / "main.py", verb]
        return subprocess.run(
            command,
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "ULTRACLUSTER_ROOT": str(self.root),
                "SLURMD_NODENAME": "n1",
                "SLOWER": str(slower),
                **environment,
            },
            check=False,
            timeout=900,
        ).returncode

    def left(self) -> list[int]:
        """Groups of processes of checks in which one still runs."""
        groups = map(int, self.started.read_text().split()) if self.started.exists() else ()
        return [group for group in groups if runs(group)]

    @property
    def changes(self) -> list[str]:
        """What Slurm was told to change."""
        calls = self.state / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        questions = ("--oneliner", "--noheader", "show config")
        return [line for line in lines if not line.startswith(questions)]

    @property
    def log(self) -> str:
        file = self.root / "var/log/ultracluster/health.log"
        return file.read_text() if file.exists() else ""


def runs(group: int) -> bool:
    """Whether one of its processes is there, and no zombie."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, own, *_ = file.read_text().rpartition(")")[2].split()
            if int(own) == group and state not in "ZX":
                return True
    return False
