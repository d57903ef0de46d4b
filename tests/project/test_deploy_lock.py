"""One deploy at a time in a project: a second process is refused, a dead one holds nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ultracluster.project.deploy_lock import LOCK, only_one
from ultracluster.project.place import ProjectError

HOLD = """
import signal, sys
from pathlib import Path
from ultracluster.project.deploy_lock import only_one
with only_one(Path(sys.argv[1]), "deploy of prod"):
    print("held", flush=True)
    signal.pause()
"""


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        with (
            pytest.raises(ProjectError, match=rf"the deploy of prod \(process {other.pid}, since 20.* UTC\)"),
            only_one(tmp_path, "destroy of dev"),
        ):
            pytest.fail("it holds a lock that another process has")
        other.send_signal(signal.SIGKILL)
    with only_one(tmp_path, "destroy of dev"):
        assert (tmp_path / LOCK).read_text().startswith("the destroy of dev (process ")
    with only_one(tmp_path, "destroy of dev"):
        pass  # it was let go


def test_what_a_lock_says_is_shown_as_plain_text(tmp_path: Path) -> None:
    with only_one(tmp_path, "deploy of a"):
        (tmp_path / LOCK).write_text("\x1b[31mred\nline")
        with pytest.raises(ProjectError) as refused, only_one(tmp_path, "deploy of b"):
            pass
    assert "\x1b" not in str(refused.value) and "red" in str(refused.value)
