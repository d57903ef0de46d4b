"""`pytest --quick`: what it leaves out, what it refuses, what comes first. Every shell finds our tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from project import ROOT
from quick import ROOMS, SLOW_ROOMS, changed, slow

pytestmark = pytest.mark.slow
SLOW = {
    "catalog": (3, 1),
    "config": (4, 0),
    "model": (2, 4),
    "moving": (1, 0),
    "plan": (2, 1),
    "rules": (1, 7),
}
"""Files and tests marked `slow` in rooms that must be quick. Who raises a number says why in the commit."""
FILES = {
    "constructs/ultracluster/model/facts.py": "",
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef outside(): ...\n\n@pytest.fixture\n"
    "def server(outside): ...\n",
    "tests/model/test_near.py": "def test(): ...\n",
    "tests/clusters/test_far.py": "raise AssertionError('imported')\n",
    "tests/plan/test_whole.py": "import aws_cdk\nimport pytest\n\npytestmark = pytest.mark.slow\n",
    "tests/plan/test_cdk.py": "import jsii\n",
    "tests/plan/test_one.py": """
import contextlib, os, socket, subprocess
import pytest

@pytest.mark.slow
def test_marked(): raise AssertionError

def test_fixture(server): raise AssertionError

def test_process(): subprocess.run(["true"])

def test_fork(): os.fork()

def test_bind():
    with contextlib.suppress(Exception):
        socket.socket().bind(("127.0.0.1", 0))

def test_cdk():
    pytest.importorskip("aws_cdk")

def test_plain(): ...
""",
}


EVENTS = {"process": "subprocess.Popen", "fork": "os.fork", "bind": "socket.bind", "cdk": "aws_cdk"}


def quick(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--quick", "-c", ROOT / "pyproject.toml", "--rootdir", root,
         "-v", "-rA", "-p", "no:cacheprovider", *arguments],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests/support").mkdir()
    for name in ("conftest.py", "tests/support/quick.py", "tests/support/cpu_time.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_who_needs_the_outside_says_so_or_fails(checkout: Path, workers: str) -> None:
    said = quick(checkout, workers, "tests")

    assert re.search(r"ERROR collecting .*test_cdk\.py[\s\S]*a quick test needs jsii: mark it `slow`", said)
    assert "imported" not in said and "test_whole" not in said
    (checkout / "tests/plan/test_cdk.py").unlink()
    said = quick(checkout, workers, "tests")
    outcomes = re.findall(r"^(PASSED|FAILED) tests/plan/test_one\.py::test_(\w+)", said, re.MULTILINE)
    assert {name: word for word, name in outcomes} == {"plain": "PASSED"} | dict.fromkeys(EVENTS, "FAILED")
    for event in EVENTS.values():
        assert f"a quick test and needs {event}: mark it `slow`, or let its fixture ask for `outside`" in said


def test_tests_of_what_changed_come_first(checkout: Path) -> None:
    def git(*words: str) -> None:
        own = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *own, *words], cwd=checkout, check=True, capture_output=True)

    for name in ("tests/plan/test_cdk.py", "tests/plan/test_one.py"):
        (checkout / name).unlink()
    (checkout / "tests/catalog").mkdir()
    for name in ("catalog/test_a.py", "model/test_z.py"):
        (checkout / "tests" / name).write_text("def test(): ...\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "-m", "x")
    assert changed(checkout) == []
    git("checkout", "-b", "branch")
    (checkout / "constructs/ultracluster/model/facts.py").write_text("# a comment\n")
    git("commit", "-am", "y")
    (checkout / "tests/rules").mkdir()
    (checkout / "tests/rules/test_new.py").write_text("def test(): ...\n")

    assert changed(checkout) == ["constructs/ultracluster/model/facts.py", "tests/rules/test_new.py"]
    said = quick(checkout, "-n0")
    assert re.findall(r"^tests/(\S+)::test ", said, re.MULTILINE) == [
        "rules/test_new.py", "model/test_near.py", "model/test_z.py", "catalog/test_a.py",
    ]  # fmt: skip


def test_every_room_is_quick_or_slow() -> None:
    rooms = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert rooms - {"support"} == ROOMS | SLOW_ROOMS
    assert not ROOMS & SLOW_ROOMS


def test_nothing_goes_out_of_the_quick_run_unseen() -> None:
    files, tests = Counter[str](), Counter[str]()
    for room in SLOW:
        for path in (ROOT / "tests" / room).rglob("*.py"):
            files[room] += slow(path)
            tests[room] += len(re.findall(r"^\s*@pytest\.mark\.slow$|marks=.*slow", path.read_text(), re.M))
    assert {room: (files[room], tests[room]) for room in SLOW} == SLOW


def test_tools_are_found_from_any_shell() -> None:
    tools = ["cfn-lint", "shellcheck", "node", "cdk"]
    code = f"import runpy, shutil; runpy.run_path('conftest.py'); print(*map(shutil.which, {tools}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    *python, npm = (Path(path).parent for path in done.stdout.split())

    assert npm == ROOT / "node_modules" / ".bin"
    assert python[:2] == [Path(sys.executable).parent] * 2
