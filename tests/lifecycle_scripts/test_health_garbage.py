"""What tools print, torn and mixed up at random: each look still says one line, and never breaks."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

CHECKS = ("gpu_count", "ecc", "nvlink", "clocks", "fabric_manager", "limits", "time_sync", "disks")
INSERTS = [
    b"\n",
    b", ",
    b"$(id)",
    b"*",
    b"%s",
    b"\0",
    b"[N/A]",
    b"ERR!",
    b"'",
    b'"',
    b"\x1b[31m",
    b"-1",
    b"08",
]
GPU = (
    "{0}, 00000000:5{0}:00.0, GPU-{0}, NVIDIA H100 80GB HBM3, Enabled, Disabled, Enabled, 0, 0, Not Active, "
    "Not Active, Not Active, Not Active, 345, 1980, 31, P0, 0, Completed, Success, None\n"
)
PRINTED = {
    "query-gpu": "".join(map(GPU.format, range(8))),
    "query-remapped-rows": "".join(f"00000000:5{index}:00.0, No, No\n" for index in range(8)),
    "nvlink": "".join(
        f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index})\n"
        + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(18))
        for index in range(8)
    ),
    "chronyc": "A9FEA97B,169.254.169.123,4,1763841600.1,-0.000001234,-0.000001,0.00001,1.0,0.0,0.1,0.0002,0.0003,16.1,Normal\n",  # noqa: E501
    "df": "    Avail      Size Mounted on\n 90000000 100000000 /\n",
}
FACTS = {
    "NODE_ROLE": "compute",
    "NODE_FAMILY": "pcs",
    "NODE_ACCELERATOR": "nvidia",
    "NODE_ACCELERATORS": "8",
    "NODE_ACCELERATOR_NAME": "H100",
    "NODE_NVSWITCH": "yes",
    "NODE_EFA_INTERFACES": "0",
}
PROGRAM = """#!/bin/bash
case ${{0##*/}}:$1 in
  *:--query-gpu*) cat '{0}/query-gpu' ;;
  *:--query-remapped*) cat '{0}/query-remapped-rows' ;;
  nvidia-smi:*) cat '{0}/nvlink' ;;
  *) cat '{0}'/"${{0##*/}}" ;;
esac
"""


def torn(text: bytes, chance: random.Random) -> bytes:
    """With up to a dozen bytes changed, taken out, or put in."""
    there = bytearray(text)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(there) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(there):
            there[at] = chance.randrange(256)
        elif kind == 1:
            del there[at : at + chance.randint(1, 40)]
        elif kind == 2:
            there[at:at] = chance.randbytes(chance.randint(1, 20))
        else:
            there[at:at] = chance.choice(INSERTS)
    return bytes(there)


@pytest.mark.parametrize("seed", range(4))
def test_torn_output(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    root, tools = tmp_path / "root", tmp_path / "bin"
    state = root / "var/lib/ultracluster/health"
    for folder in (state, tools, root / "proc/sys/kernel/random", root / "proc/self"):
        folder.mkdir(parents=True)
    (state / "node").write_text("".join(f"{key}={value}\n" for key, value in FACTS.items()))
    (root / "proc/sys/kernel/random/boot_id").write_text("0123\n")
    (root / "proc/self/mountinfo").write_text("25 1 259:0 / / rw shared:1 - ext4 /dev/root rw\n")
    for name in ("nvidia-smi", "chronyc", "df"):
        (tools / name).write_text(PROGRAM.format(tmp_path))
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "ULTRACLUSTER_ROOT": str(root)}
    for name, text in PRINTED.items():
        (tmp_path / name).write_bytes(torn(text.encode(), chance))
    for check in CHECKS:
        for _ in range(2):  # the second one finds what the first has kept, torn as well
            done = subprocess.run(
                ["bash", ROOT / "lifecycle_scripts/lib/run_check.sh", check, "quick", "600"],
                env=environment,
                capture_output=True,
                timeout=900,
                check=False,
            )
            found = json.loads(done.stdout)
            assert done.stdout.count(b"\n") == 1
            assert found["code"] != "broken", found["detail"]
            assert done.returncode == ("ok", "warn", "critical", "unknown").index(found["result"])
            for kept in state.glob("*.state"):
                kept.write_bytes(torn(kept.read_bytes(), chance))


@pytest.mark.parametrize(
    "found",
    [
        ["ok - - 8 GPUs answer", "ok - - 8 GPUs answer", "ok - - cut by MIG"],
        ['unknown late - no "answer" \\ in time'],
        ["ok - - some", "unknown late - slow", "ok - - more", "unknown unread - odd", "unknown unread - odd"],
        ["unknown late - a: b", "unknown a - b"],
        ["unknown late - " + "x" * 400, "unknown unread - " + "y" * 400, "unknown c - " + "z" * 400],
        ["unknown two-words - odd"],
        ["unknown late - ü", "ok - - é"],
        ["unknown late 3 of one GPU"],
        ["unknown late - slow", "fault lost 3 gone"],
        ["warn off - odd"],
        [],
    ],
)
def test_a_line_without_python_is_that_of_the_report(tmp_path: Path, found: list[str]) -> None:
    """What bash writes where the table has no part in it (run_check.sh), and report.py for the same."""
    home = tmp_path / "home"
    (home / "health").mkdir(parents=True)
    (home / "lib").symlink_to(ROOT / "lifecycle_scripts/lib")
    for name in ("report.py", "faults.py", "faults.json"):
        (home / "health" / name).symlink_to(ROOT / "lifecycle_scripts/health" / name)
    lines = tmp_path / "found"
    lines.write_text("".join("\t".join(line.split(" ", 3)) + "\n" for line in found))
    check = f"x::applies() {{ :; }}\nx::quick() {{ cat '{lines}' >\"$HEALTH_FOUND\"; }}\n"
    (home / "health/x.sh").write_text(check)
    (tmp_path / "var/lib/ultracluster/health").mkdir(parents=True)
    (tmp_path / "var/lib/ultracluster/health/node").touch()
    environment = {"PATH": os.environ["PATH"], "ULTRACLUSTER_ROOT": str(tmp_path)}
    environment["ULTRACLUSTER_HOME"] = str(home)
    said = subprocess.run(
        ["bash", home / "lib/run_check.sh", "x", "quick", "300"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    expected = subprocess.run(
        [sys.executable, "-ISB", home / "health/report.py", "x", "quick", lines],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (said.returncode, said.stdout) == (expected.returncode, expected.stdout), said.stderr
