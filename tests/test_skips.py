"""A skip is a failure in CI, but for tests whose input no package archive has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from project import ROOT

TESTS = """
import pytest

def needs(variable, *patterns):
    return pytest.mark.needs_input(variable, *patterns, reason="nothing is built")

def test_plain():
    pytest.skip("no such tool")

@pytest.fixture
def tool():
    pytest.skip("no such tool")

@needs("NOT_SET", "*.gz")
def test_variable_not_set(tool):
    raise AssertionError

@needs("GIVEN", "*.bz2", "*.xz")
def test_file_not_there(tool):
    raise AssertionError

@needs("GIVEN", "*.gz")
@needs("GIVEN", "*.xz")
def test_one_of_two_not_there(tool):
    raise AssertionError

@needs("GIVEN", "*.xz", "*.gz")
def test_file_is_there():
    pass

@needs("GIVEN", "*.gz")
def test_file_is_there_and_something_else_is_not(tool):
    pass

@needs("NO_FOLDER", "*.gz")
def test_no_such_folder():
    pass
"""
EVERYWHERE = {
    "test_variable_not_set": "skipped",
    "test_file_not_there": "skipped",
    "test_one_of_two_not_there": "skipped",
    "test_file_is_there": "passed",
    "test_no_such_folder": "failed",
}


def outcomes(report: Path) -> dict[str, str]:
    words = {"skipped": "skipped", "failure": "failed", "error": "failed"}
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 # pytest wrote it
        found[case.attrib["name"]] = next(
            (words[child.tag] for child in case if child.tag in words), "passed"
        )
    return found


@pytest.mark.parametrize("in_ci", [True, False])
def test_which_skips_stay_skips(tmp_path: Path, in_ci: bool) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "archive.gz").touch()
    environment = {name: value for name, value in os.environ.items() if name != "ULTRACLUSTER_NO_SKIPS"}
    environment |= {
        "PYTHONPATH": str(ROOT / "tests" / "support"),
        "GIVEN": str(tmp_path),
        "NO_FOLDER": str(tmp_path / "none"),
    }
    if in_ci:
        environment["ULTRACLUSTER_NO_SKIPS"] = "1"
    workers = "-n1" if in_ci else "-n0"  # what a worker skips is told by the process that started it
    config = ["-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", workers, *config, "--junitxml=report.xml", "test_it.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    elsewhere = "failed" if in_ci else "skipped"
    assert outcomes(tmp_path / "report.xml") == EVERYWHERE | {
        "test_plain": elsewhere,
        "test_file_is_there_and_something_else_is_not": elsewhere,
    }
    assert sorted(re.findall(r"not proven here: .*::(\w+): (.*)", done.stdout)) == [
        ("test_file_not_there", f"nothing is built: no *.bz2 or *.xz in GIVEN ({tmp_path})"),
        ("test_one_of_two_not_there", f"nothing is built: no *.xz in GIVEN ({tmp_path})"),
        ("test_variable_not_set", "nothing is built: no *.gz (NOT_SET names no folder)"),
    ]


def test_only_builds_from_source_may_be_skipped() -> None:
    files = [ROOT / "conftest.py", *(ROOT / "tests").rglob("*.py")]
    users = {path.name for path in files if "mark.needs_input(" in path.read_text()} - {Path(__file__).name}
    assert users == {"test_pod_security.py", "test_source_builds.py"}
