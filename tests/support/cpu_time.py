"""CPU seconds of each test file: `pytest --cpu-times=FILE` writes them; `make bench` compares folders."""

from __future__ import annotations

import csv
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


class CpuTimes:
    """A plugin. Each worker measures the files that it runs; the controller adds them up and writes them.

    It looks once per file: to read every process of the machine costs 2 to 5 ms, and there are 19,000 tests.
    """

    def __init__(self, target: Path, root: Path) -> None:
        self._target = target
        self._root = root
        self._files: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        self._last = (cpu_seconds(), time.monotonic())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        yield
        row = self._files[item.path.relative_to(self._root).as_posix()]
        row[0] += 1
        if nextitem is not None and nextitem.path == item.path:
            return
        cpu, clock = cpu_seconds(), time.monotonic()
        row[1] += max(0.0, cpu - self._last[0])  # a process that nobody waited for leaves no time
        row[2] += clock - self._last[1]
        self._last = (cpu, clock)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu_times"] = dict(self._files)
        else:
            self._write()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for file, (tests, cpu, clock) in getattr(node, "workeroutput", {}).get("cpu_times", {}).items():
            row = self._files[file]
            row[0] += tests
            row[1] += cpu
            row[2] += clock

    def _write(self) -> None:
        with self._target.open("w", newline="", encoding="utf-8") as out:
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(("file", "tests", "cpu_seconds", "clock_seconds"))
            for file, (tests, cpu, clock) in sorted(self._files.items()):
                rows.writerow((file, int(tests), f"{cpu:.2f}", f"{clock:.2f}"))


def cpu_seconds() -> float:
    """Of this process, of the children that it waited for, and of all descendants that still run."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + sum(map(_spent, _descendants()))


def _spent(pid: int) -> float:
    return sum(int(field) for field in _fields(pid)[11:15]) / TICKS


def _descendants() -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and (fields := _fields(int(entry.name))):
            children[int(fields[1])].append(int(entry.name))
    known = [os.getpid()]
    for pid in known:
        known += children[pid]
    return known[1:]


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, after the name: state, parent, ..."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()
