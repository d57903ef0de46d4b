"""The command `ultracluster` in the process of the test: a new one would load the package first."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app


@dataclass(frozen=True)
class Ended:
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def ultracluster(*words: str, cwd: Path = ROOT, **variables: str) -> Ended:
    """Run a command in a folder. An exception, which would be a traceback, fails the test."""
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(app, words, prog_name="ultracluster", env=variables, catch_exceptions=False)
    return Ended(done.exit_code, done.stdout, done.stderr)
