"""An environment that a fork adds leaves the tests green, and they say how to take its snapshot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT


@pytest.mark.slow
def test_an_added_environment_passes_with_a_warning_and_a_snapshot_holds_it(tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True)
    for name in listed.stdout.split():
        if name.startswith(("constructs/", "stacks/", "lifecycle_scripts/", "environments/", "tests/s")) or (
            "/" not in name or name == "tests/conftest.py"
        ):
            target = fork / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).exists():
                shutil.copy2(ROOT / name, target, follow_symlinks=False)
    (fork / "environments" / "acme.yaml").write_text("extends: eks-p5en.yaml\nname: acme\n")

    first = run(fork)
    taken = run(fork, "--snapshot-update")
    (fork / "environments" / "acme.yaml").write_text("extends: eks-p5en.yaml\nname: acme\ntags: {a: b}\n")
    changed = run(fork)

    assert first.returncode == 0, first.stdout
    assert "environments/acme.yaml has no snapshot" in first.stdout
    assert "pytest -n 0 tests/stacks/test_environments.py -k acme --snapshot-update" in first.stdout
    assert taken.returncode == 0 and "has no snapshot" not in taken.stdout
    assert changed.returncode == 1, "a snapshot that is there is held to"


def run(fork: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/stacks/test_environments.py"]
    return subprocess.run(
        [*command, "-k", "acme and reviewed", *more],
        cwd=fork,
        env=os.environ | {"PYTHONPATH": f"{fork}/constructs:{fork}"},
        capture_output=True,
        text=True,
        check=False,
    )
