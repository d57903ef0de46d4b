"""A long answer goes through a pager where a person sits at the terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import pty
import struct
import subprocess
import sys
import termios
import traceback
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest
from needs import need
from project import ROOT

from ultracluster.cli import main, paging

PAGER = """#!/bin/sh
echo "LESS=$LESS" >"{folder}/env"
cat >"{folder}/got"
echo PAGED
"""


def pager(folder: Path, text: str = PAGER, name: str = "pager") -> str:
    file = folder / name
    file.write_text(text.format(folder=folder))
    file.chmod(0o755)
    return str(file)


def run(*words: str, rows: int = 24, key: str = "", **variables: str) -> tuple[str, int]:
    """Text and exit code on a terminal of 100 columns. The key is typed once rules are shown."""
    child, master = pty.fork()
    if child == 0:
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        become(list(words), {"TERM": "xterm-256color", **variables})
    got = b""
    with contextlib.suppress(OSError):  # the terminal closes with the command
        while part := os.read(master, 65536):
            got += part
            if key and b"ENV001" in got:
                os.write(master, key.encode())
                key = ""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(master)  # not earlier: to close the terminal of a running process kills it
    return got.decode(), code


def become(words: list[str], variables: dict[str, str]) -> None:
    """Run the command in this process, a child of the test's, and end it; no exception may leave it."""
    code: Any = 1
    try:
        os.chdir(ROOT)
        for name in ("PAGER", "ULTRACLUSTER_PAGER", "LESS", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ.update(variables)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r", closefd=False) for n in range(3))
        sys.argv = ["ultracluster", *words]
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # the interpreter would print any
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def test_long_answers_are_paged_and_short_ones_are_not(tmp_path: Path) -> None:
    asked = pager(tmp_path)
    shown, code = run("rules", PAGER=asked)
    assert code == 0
    assert "PAGED" in shown
    assert "ENV001" not in shown
    assert (tmp_path / "got").read_text().count("\n") > 100
    assert (tmp_path / "env").read_text() == "LESS=FRX\n"
    cases: list[tuple[list[str], int, dict[str, str]]] = [
        (["rules"], 4000, {}),
        (["rules", "--no-pager"], 24, {}),
        (["--no-pager", "rules"], 24, {}),
        (["rules", "--json"], 24, {}),
        (["rules", "--markdown"], 24, {"ULTRACLUSTER_PAGER": ""}),
        (["rules"], 24, {"ULTRACLUSTER_PAGER": "cat"}),
        (["rules"], 24, {"TERM": "dumb"}),
        (["rules"], 24, {"ULTRACLUSTER_PART": "1"}),
        (["schema"], 24, {}),
    ]
    for words, rows, variables in cases:
        shown, code = run(*words, rows=rows, PAGER=asked, **variables)
        assert (code, "PAGED" in shown) == (0, False), words
        assert len(shown) > 3000


def test_ours_wins_and_what_less_is_told_stays(tmp_path: Path) -> None:
    run("rules", PAGER="false", ULTRACLUSTER_PAGER=f"{pager(tmp_path)} -x", LESS="R")

    assert (tmp_path / "env").read_text() == "LESS=R\n"


def test_the_exit_code_is_the_commands_and_errors_come_after(tmp_path: Path) -> None:
    shown, code = run("cost", "dev", "--strict", "--today", "2030-01-01", PAGER=pager(tmp_path))

    assert code == 1
    assert shown.index("PAGED") < shown.index("--strict: not everything")
    assert "--strict" not in (tmp_path / "got").read_text()


@pytest.mark.parametrize(
    ("asked", "there"),
    [("no-such-program", True), ("/", True), ("'unclosed", True), ("head -n 1", False), ("false", False)],
)
def test_a_pager_that_is_missing_or_ends_early_is_no_error(asked: str, there: bool) -> None:
    shown, code = run("rules", PAGER=asked)

    assert code == 0
    assert "Traceback" not in shown
    assert "rror" not in shown.replace("  error  ", "")[:200]
    assert ("GOV005" in shown) == there


def test_a_wrapper_whose_pager_is_missing(tmp_path: Path) -> None:
    shown, code = run("rules", PAGER=pager(tmp_path, '#!/bin/sh\nexec no-such-pager "$@"\n'))

    assert code == 0
    assert "GOV005" in shown


def test_less_itself() -> None:
    need("less")
    shown, code = run("rules", key="q")

    assert code == 0
    assert "ENV001" in shown
    assert "GOV005" not in shown
    shown, code = run("plan", "dev", rows=400)
    assert code == 0
    assert "next: ultracluster preflight dev" in shown


def test_a_pipe_gets_everything_and_may_close_early() -> None:
    whole = subprocess.run(
        [sys.executable, "-m", "ultracluster", "rules"],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "PAGER": "false"},
    )  # fmt: skip
    assert "GOV005" in whole.stdout
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m ultracluster rules --markdown | head -1"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert closed.stdout.count("\n") == 1
    assert closed.stderr == ""


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, ["less"]),
        ({"PAGER": "more -s"}, ["more", "-s"]),
        ({"PAGER": ""}, []),
        ({"PAGER": "cat"}, []),
        ({"PAGER": "more", "ULTRACLUSTER_PAGER": "less -S"}, ["less", "-S"]),
        ({"PAGER": "more", "ULTRACLUSTER_PAGER": ""}, []),
        ({"PAGER": "'"}, []),
    ],
)
def test_which_pager(variables: dict[str, str], words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGER", "ULTRACLUSTER_PAGER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert paging.pager() == words
