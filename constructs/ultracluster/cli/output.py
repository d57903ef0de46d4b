"""What stands between a command and the terminal: text from outside is shown as it is, and obeyed by nobody.

Names, messages and log lines of AWS and of nodes, and what a file says, go through the streams that
`seen_output` puts in the place of standard output and standard error. Only `Drawn` text, which a page of ours
made out of text that was made visible first, keeps its colours.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from ultracluster.cli import terminal
from ultracluster.cli.progress import LINE
from ultracluster.config.plain_text import visible

_COMMAND = re.compile(r"^([ \t]*):(?=:)|#(?=#\[)", re.MULTILINE)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


CLOSED_PIPE = 141
"""Exit code where the reader of standard output has gone: that of a process which SIGPIPE ended."""


class Drawn(str):
    """Text whose control characters are ours: of a page with colours, or a command to a workflow."""

    __slots__ = ()


class SeenStream(terminal.WrappedStream):
    """A stream of text that writes what it gets as `visible` shows it."""

    def write(self, text: str) -> int:
        """Write, and say how many characters of `text` that were: all."""
        if self.stream.isatty():
            LINE.clear()
        with self._reader():
            self.stream.write(text if isinstance(text, Drawn) else seen(text))
        return len(text)

    def flush(self) -> None:
        with self._reader():
            self.stream.flush()

    @contextmanager
    def _reader(self) -> Generator[None]:
        """End the command where nobody reads any more; rich and typer would each end it with another code."""
        try:
            yield
        except BrokenPipeError:
            discard(self.stream)
            raise SystemExit(CLOSED_PIPE) from None

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def discard(stream: Any) -> None:
    """Send what is still buffered to nowhere: the interpreter would fail on it again when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def seen(text: str) -> str:
    """The text as it is shown."""
    return spoken(visible(text))


def spoken(text: str) -> str:
    """The text without orders: a log of GitHub Actions obeys lines that begin with `::`, and `##[`
    (actions/runner, src/Runner.Common/ActionCommand.cs), so that a space goes between."""
    return _COMMAND.sub(r"\g<0> ", text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def draw(text: str) -> None:
    """Print lines of ours with colours where they are wanted; what is from outside was made visible."""
    shown = spoken(text if terminal.coloured() else _COLOUR.sub("", text))
    sys.stdout.write(Drawn(shown + "\n"))
    sys.stdout.flush()


@contextmanager
def seen_output() -> Generator[None]:
    """For one command; a stream that was closed before takes everything and shows nothing."""
    before = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        streams = tuple(SeenStream(nowhere if one is None else one) for one in before)
        sys.stdout, sys.stderr = cast("Any", streams)
        try:
            yield
        finally:
            if (sys.stdout, sys.stderr) == streams:
                sys.stdout, sys.stderr = before
