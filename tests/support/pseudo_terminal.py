"""A command on a pseudo-terminal, in this process."""

from __future__ import annotations

import os
import pty
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ultracluster.cli.main import app


class Shown:
    """What came to the terminal, and how the command ended."""

    def __init__(self, text: str, code: int) -> None:
        self.text, self.code = text, code


def on_terminal(patch: pytest.MonkeyPatch, *words: str, out: Path | None = None, **variables: str) -> Shown:
    """Run a command with standard error, and without `out` standard output, on a terminal of 100 columns."""
    master, slave = pty.openpty()
    got = bytearray()

    def read() -> None:
        while True:
            try:
                got.extend(os.read(master, 65536))
            except OSError:
                return

    reader = threading.Thread(target=read)
    reader.start()
    code: Any = 0
    with patch.context() as patched, os.fdopen(slave, "w", encoding="utf-8") as screen:
        patched.setattr(sys, "stdout", out.open("w", encoding="utf-8") if out else screen)
        patched.setattr(sys, "stderr", screen)
        settings = {"TERM": "xterm-256color", "COLUMNS": "100", **variables}
        for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
            patched.delenv(name, raising=False)
        for name, value in settings.items():
            patched.setenv(name, value)
        try:
            app(list(words))
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.stdout.flush()
            screen.flush()
            if out:
                sys.stdout.close()
    reader.join()
    os.close(master)
    return Shown(got.decode(), int(code))
