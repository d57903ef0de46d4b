"""The suite passes wherever it is run: a part of it is run again in a strange place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

pytestmark = pytest.mark.slow

NOWHERE = "/proc/nobody"
"""A home that not even root can make."""
PART = (
    "tests/config/test_file_write.py",  # what we write is as open as it was before
    "tests/lifecycle_scripts/test_bats.py::test_bats[image_family]",  # scripts in a sandbox
)
"""What writes files, and what starts programs. Not the CDK: its kernel would unpack its library once more."""


def test_a_part_passes_with_another_tmpdir_a_strict_umask_and_no_home(tmp_path: Path) -> None:
    own = tmp_path / "a folder of one's own"
    own.mkdir(mode=0o700)
    unset = ("XDG_CACHE_HOME", "PYTEST_XDIST_WORKER")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rs", "-p", "no:cacheprovider", *PART],
        cwd=ROOT,
        env=environment | {"HOME": NOWHERE, "TMPDIR": str(own)},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout, done.stdout
    assert not list(own.glob("ultracluster-cache-*")), "a run leaves nothing of its own cache"
