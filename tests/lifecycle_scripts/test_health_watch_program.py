"""The watcher as a program: it follows the journal, continues after its cursor and ends with its reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from health_watcher import HEALTH, SECOND, XID_13, XID_74, XID_79, entry


@pytest.fixture
def node(tmp_path: Path) -> dict[str, str]:
    """A root with the facts of an H100; journalctl prints `journal`, and waits while `open` is there."""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    (tmp_path / "var/lib/ultracluster/health").mkdir(parents=True)
    (tmp_path / "var/lib/ultracluster/health/node").write_text("NODE_ACCELERATOR_NAME=H100\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "journal").write_text("")
    program = tmp_path / "bin/journalctl"
    program.write_text(
        f"#!/bin/bash\necho \"$*\" >>'{tmp_path}/calls'\ncat '{tmp_path}/journal'\n"
        f"while [[ $* == *--follow* && -e '{tmp_path}/open' ]]; do sleep 0.05; done\n"
    )
    program.chmod(0o755)
    return {"ULTRACLUSTER_ROOT": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}


def write(node: dict[str, str], *entries: dict[str, Any], noise: str = "") -> None:
    text = noise + "".join(json.dumps(one) + "\n" for one in entries)
    Path(node["ULTRACLUSTER_ROOT"], "journal").write_text(text, encoding="utf-8")


def test_it_follows_and_goes_on_after_its_cursor(node: dict[str, str]) -> None:
    root = Path(node["ULTRACLUSTER_ROOT"])
    (root / "open").touch()
    write(node, entry("usb", SECOND), entry(XID_79, 2 * SECOND), noise="no json\n\n{\n")
    command = [sys.executable, "-ISB", HEALTH / "watch.py"]
    with subprocess.Popen(command, env=os.environ | node, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert (line["check"], line["code"], line["verb"]) == ("xid", "79", "watch")
        process.terminate()
        assert process.wait(300) == 0
    state = json.loads((root / "var/lib/ultracluster/health/watch.state").read_text())
    assert state["cursor"] == entry("", 2 * SECOND)["__CURSOR"]
    write(node, entry(XID_13, 3 * SECOND))
    with subprocess.Popen(command, env=os.environ | node, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["code"] == "13"
        process.terminate()
        process.wait(300)
    first, second = (root / "calls").read_text().splitlines()[:2]
    assert "--after-cursor" not in first and "--dmesg" in first and "--boot" in first
    assert f"--after-cursor={state['cursor']}" in second


def test_a_journalctl_that_ends_is_started_again(node: dict[str, str]) -> None:
    write(node, entry(XID_79, 2 * SECOND))
    with subprocess.Popen(
        [sys.executable, "-ISB", HEALTH / "watch.py"],
        env=os.environ | node,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["code"] == "79"
        write(node, entry(XID_79, 2 * SECOND), entry(XID_74, 3 * SECOND))
        assert json.loads(process.stdout.readline())["code"] == "74"
        process.terminate()
        process.wait(300)


def test_a_reader_that_goes_away_ends_it_and_loses_nothing(node: dict[str, str]) -> None:
    root = Path(node["ULTRACLUSTER_ROOT"])
    lines = [entry(XID_13.replace(":53:", f":{bus:02x}:"), (bus + 1) * SECOND) for bus in range(200)]
    write(node, *lines)
    command = f"'{sys.executable}' -ISB '{HEALTH / 'watch.py'}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | node,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert '"gpu": "0000:00:00"' in done.stdout
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    state = json.loads((root / "var/lib/ultracluster/health/watch.state").read_text())
    told = [line["__CURSOR"] for line in lines].index(state["cursor"])
    assert told < len(lines) - 1, "what was not told counts as read"


def test_a_wrong_call_says_how_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, "-ISB", HEALTH / "watch.py", "now"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--once FILE" in done.stderr
