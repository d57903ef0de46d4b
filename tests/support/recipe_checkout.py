"""A copy of the checkout in which recipes of CONTRIBUTING.md are applied and tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT
from recipes import recipes

_COPIED = ("constructs", "docs/runbooks", "environments", "lifecycle_scripts", "stacks", "tests", "tools")


def copy_with(folder: Path, *titles: str) -> Path:
    """A copy of the checkout with these recipes applied."""
    ignored = shutil.ignore_patterns("__snapshots__", "*.bats", "node_modules")
    for name in _COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("conftest.py", "pyproject.toml", "package.json"):
        shutil.copy(ROOT / name, folder)
    for title in titles:
        for block in recipes()[title]:
            block.apply(folder)
    return folder


def run(checkout: Path, *command: str) -> str:
    """What a program of Python prints in the copy."""
    places = (checkout / "constructs", checkout / "tests/support", checkout)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": ":".join(map(str, places)), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
