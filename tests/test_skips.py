"""A skip is a failure in CI, but for tests whose input no package archive has. Each names its remedy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from needs import FILES, PACKAGES, last_line, missing, without_setup
from project import ROOT

pytestmark = pytest.mark.slow

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
OTHER_REASONS = {
    "conftest.py: f\"{marker.kwargs['reason']}: no {' or '.join(patterns)} {where}\"",
    'slurm_twin/test_core.py: "no control groups here"',
    'support/other_users.py: "no temporary folder that other users may enter: set TMPDIR to one"',
    'stacks/test_environments.py: "snapshots are taken, not compared"',
    'support/debian_root.py: "this machine\'s apt has no archive over HTTP"',
    "support/debian_root.py: f\"debootstrap failed: {' '.join(made.stdout.splitlines()[-1:])}\"",
}
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
    last = done.stdout.splitlines()[-1]
    if in_ci:
        assert last.startswith("3 skipped; for what no package brings: nothing is built: no *.")
    else:
        assert last.startswith(
            "5 skipped; for what no package brings: no such tool | nothing is built: no *."
        )


@pytest.mark.parametrize("how", [["-n0"], ["-n1"], ["-n0", "-q"]])
def test_the_last_line_of_a_run_enables_what_was_skipped(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom needs import missing, need, need_setup\n"
        "def test_one(): need('gpg')\ndef test_two(): need('slurmdbd', 'promtool')\n"
        "def test_three(): need_setup('a judge', False)\ndef test_four(): pass\n"
    )
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "ULTRACLUSTER_NO_SKIPS"}
    hidden = "import needs\nneeds._here = lambda name: False\n"
    (tmp_path / "hide.py").write_text(hidden)
    config = ["-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider", "-p", "hide"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *how, *config, "test_it.py"],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": f"{ROOT / 'tests' / 'support'}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split("\n")[-2:] == [
        "3 skipped; run them with: sudo apt-get install gnupg prometheus slurmdbd && make setup-dev",
        "",
    ]


def test_reasons_come_from_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("needs._here", lambda name: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    as_root, torch = missing("ip", "nft", root=True), missing("python3-torch")

    assert as_root == "ip, nft, root is not here [apt-get install iproute2 nftables; sudo]"
    assert last_line([as_root, torch, without_setup("bats"), "no control groups here"]) == (
        "4 skipped; run them with: sudo apt-get install iproute2 nftables python3-torch && make setup-dev && "
        "sudo make test; 1 of them for what no package brings: no control groups here"
    )
    with pytest.raises(AssertionError, match="nobody-knows-it"):
        missing("nobody-knows-it")


def test_every_skip_names_its_package_or_stands_here() -> None:
    """A reason that `needs.py` does not write is in no package; CI, which has all packages, fails on it."""
    skip = re.compile(r"(?:pytest\.skip|mark\.skip|mark\.skipif)\((.*)\)")
    from_the_table = re.compile(
        r"why|missing|without_setup\(.*\)|str\(error\)|why_not\(\)|.*str\(why_not_here\(\)\)"
    )
    found = {
        f"{path.relative_to(ROOT / 'tests')}: {reason}"
        for path in (ROOT / "tests").rglob("*.py")
        if path.name not in ("test_skips.py", "needs.py")
        for reason in skip.findall(path.read_text())
        if not from_the_table.fullmatch(reason)
    }
    assert found == OTHER_REASONS


def test_ci_installs_what_the_table_names_and_the_machine_lacks() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    done = subprocess.run(
        ["/usr/bin/python3", "-S", ROOT / "tests/support/needs.py"],
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "$(python3 tests/support/needs.py)" in script
    assert set(done.stdout.split()) <= {*PACKAGES.values(), *FILES.values()}
    assert {"chromium", "gnupg", "less"} <= set(done.stdout.split())


def test_only_builds_from_source_may_be_skipped() -> None:
    files = [ROOT / "conftest.py", *(ROOT / "tests").rglob("*.py")]
    users = {path.name for path in files if "mark.needs_input(" in path.read_text()} - {Path(__file__).name}
    assert users == {"test_pod_security.py", "test_source_builds.py"}
