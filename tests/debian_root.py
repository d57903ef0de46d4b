"""A real Debian root with the lifecycle scripts in it, made by debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from project import ROOT

SCRIPTS = ROOT / "lifecycle_scripts"


def make_root(root: Path, *, include: str, tools: Sequence[str]) -> None:
    """Make the root, with the scripts in `scripts` and no release; the test is skipped where that cannot be.

    Args:
        include: packages beside the smallest set, separated by commas.
        tools: programs that the tests run on this machine.
    """
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("debootstrap and chroot need root")
    archive = mirror()
    if not archive:
        pytest.skip("this machine's apt has no archive over HTTP")
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={include}", "bookworm", root, archive],
        env=os.environ | {"DPKG_FORCE": "unsafe-io"},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"debootstrap failed: {' '.join(made.stdout.splitlines()[-1:])}")
    shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("releases"))
    (root / "scripts/releases").mkdir()


def mirror() -> str:
    """The Debian archive that this machine's own apt reads."""
    words = [
        word
        for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
        if file.is_file()
        for line in file.read_text().splitlines()
        if line.startswith(("deb ", "URIs:"))
        for word in line.split()
    ]
    return next(
        (word for word in words if word.startswith("http") and word.rstrip("/").endswith("/debian")), ""
    )
