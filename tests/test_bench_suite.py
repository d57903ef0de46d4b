"""`make bench` compares the CPU seconds of the last `make test` with those of benchmarks/suite.csv."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cpu_time
import pytest
from project import ROOT

from benchmarks import suite

pytestmark = pytest.mark.slow

MEASURED = """file,tests,cpu_seconds,clock_seconds
README.md,2,0.20,0.3
docs/wishes/a.md,1,0.10,0.1
tests/cli/test_a.py,10,7.25,9.0
tests/cli/deeper/test_b.py,5,2.50,3.0
tests/test_c.py,1,1.00,1.0
"""
BEFORE = """folder,tests,cpu_seconds
tests,1,6.0
tests/cli,14,4.5
tests/gone,3,2.0
"""


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suite.csv").write_text(BEFORE)
    monkeypatch.setattr(suite, "SUITE", tmp_path / "suite.csv")
    file = tmp_path / "suite-files.csv"
    file.write_text(MEASURED)
    return file


def test_folders_that_grew_are_marked(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.main(measured) == 0

    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert rows["."] == [".", "2", "0", "0.2", "0.0", "+0.2"]
    assert rows["docs/wishes"][1:] == ["1", "0", "0.1", "0.0", "+0.1"]
    assert rows["tests"][1:] == ["1", "1", "1.0", "6.0", "-5.0"]
    assert rows["tests/cli"][1:7] == ["15", "14", "9.8", "4.5", "+5.2", "OVER:"]
    assert rows["tests/gone"][1:] == ["0", "3", "0.0", "2.0", "-2.0"]
    assert rows["sum"][1:] == ["19", "18", "11.1", "12.5", "-1.4"]


def test_growth_up_to_the_limit_is_not_marked(measured: Path) -> None:
    folders = suite.by_folder(measured)
    before = {name: suite.Folder(one.tests, one.cpu_seconds - 5) for name, one in folders.items()}

    assert "OVER" not in "".join(suite.compared(folders, before))


def test_what_is_recorded_is_what_the_next_run_compares_with(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite.main(measured, record=True) == 0
    assert suite.main(measured) == 0

    assert capsys.readouterr().out.splitlines()[-1].split() == ["sum", "19", "19", "11.1", "11.1", "+0.0"]


def test_a_missing_or_old_measurement_is_said(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.utime(measured, (0, 0))
    assert suite.main(measured) == 0
    assert "is older than the newest commit" in capsys.readouterr().out

    measured.unlink()
    assert suite.main(measured) == 0
    assert "`make test` writes" in capsys.readouterr().out
    assert suite.main(measured, record=True) == 1


def test_the_file_is_one_that_it_reads() -> None:
    assert all(one.tests >= 0 for one in suite.read(suite.SUITE).values())


def test_processes_are_read_once_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read them for each of 19,000 tests took more CPU seconds than most folders."""
    spent = iter((10.0, 11.0, 13.5))
    monkeypatch.setattr(cpu_time, "cpu_seconds", lambda: next(spent))
    plugin = cpu_time.CpuTimes(tmp_path / "times.csv", tmp_path)
    items: list[Any] = [SimpleNamespace(path=tmp_path / name) for name in ("a.py", "a.py", "b.py")]
    for item, following in zip(items, [*items[1:], None], strict=True):
        list(plugin.pytest_runtest_protocol(item, following))
    plugin._write()
    rows = [line.split(",")[:3] for line in (tmp_path / "times.csv").read_text().splitlines()]
    assert rows[1:] == [["a.py", "2", "1.00"], ["b.py", "1", "2.50"]]


def test_files_that_start_first_exist() -> None:
    """A file that was moved would start among the last, and one worker would end the run alone."""
    table = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8").partition("LONGEST_FIRST = (")[2]
    names = re.findall(r'"(\w+/test_\w+\.py)"', table.partition("\n)\n")[0])
    assert len(names) > 20
    assert [name for name in names if not any((ROOT / at / name).is_file() for at in ("", "tests"))] == []
