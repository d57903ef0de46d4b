"""Commands whose output, folder or input is not there: one exit code, one line, no traceback."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import pytest
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

PROD = str(ROOT / "environments" / "prod.yaml")
WRITES = [
    ["rules"],
    ["schema"],
    ["software", "show", "--images"],
    ["validate", PROD, "--json"],
    ["plan", PROD],
    ["plan", PROD, "--json"],
    ["cost", PROD],
    ["job", "write", PROD, "--script", "train.py"],
    ["--help"],
]


class Broken(io.StringIO):
    """Standard output that fails with an error of the system."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._error = OSError(number, os.strerror(number))

    def write(self, _: str) -> int:
        raise self._error

    def flush(self) -> None:
        raise self._error


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(errno.EPIPE, 141), (errno.ENOSPC, 2)])
def test_output_that_cannot_be_written(
    words: list[str],
    number: int,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(number))
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert ("No space left" in said) is (code == 2) and "Traceback" not in said


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    ended = CliRunner().invoke(app, ["plan", "dev"])
    assert ended.exit_code == 2 and "no longer exists" in ended.output


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
@pytest.mark.parametrize(
    "words",
    [
        ["job", "why", PROD, "--topology", "FILE", "--nodes", "gpu-[1-2]"],
        ["acceptance", "FILE", "--type", "p5.48xlarge"],
        ["job", "submit", PROD, "FILE"],
        ["job", "submit", PROD, __file__, "--program", "FILE"],
        ["diff", "--templates", "FILE", "FILE"],
        ["software", "lock", "FILE"],
        ["software", "record", "FILE", "--id", "ami-0123456789abcdef", "--family", "dlami", "--release", "1"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_files_that_are_no_files(words: list[str], kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file.sh"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        with file.open("w") as sparse:
            sparse.truncate(4 << 30)
    ended = CliRunner().invoke(app, [str(file) if word == "FILE" else word for word in words])
    assert ended.exit_code == 2, ended.output
    assert ("not a file" if kind != "sparse" else "than") in " ".join(ended.output.split())
    assert file.name in ended.output and "None" not in ended.output
