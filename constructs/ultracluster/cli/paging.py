"""A long answer is shown page by page, as git does: on a terminal, by $ULTRACLUSTER_PAGER, $PAGER or less.

The pagers of rich and of Python go through a shell, and stop at each page themselves where less is missing.
Here a pager that is missing or ends early is no error, and the command's exit code stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ultracluster.cli import terminal
from ultracluster.cli.output import SeenStream
from ultracluster.cli.progress import LINE

_DRAWN = re.compile("\x1b\\[[0-9;]*m")
_NOT_RUN = (126, 127)
"""Exit codes of a wrapper whose pager is not there."""
SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""For pagers, as git sets them: show one screen and end, keep colours, leave the text on the terminal."""


def pager() -> list[str]:
    """The words of the pager; none where nothing is to be paged."""
    for name in ("ULTRACLUSTER_PAGER", "PAGER"):
        if name in os.environ:
            asked = os.environ[name]
            break
    else:
        asked = "less"
    try:
        words = shlex.split(asked)
    except ValueError:
        return []
    return [] if words in ([], ["cat"]) else words


@contextmanager
def paged(wanted: bool) -> Generator[None]:
    """Keep what a command says until it ends, and show it page by page where it is longer than the screen.

    Without a person at the terminal, and with `--no-pager`, everything is written as it comes.
    """
    out, err = sys.stdout, sys.stderr
    words = pager() if wanted and terminal.Wishes.paged and not terminal.is_part() and _attended() else []
    if not (words and isinstance(out, SeenStream) and isinstance(err, SeenStream)):
        yield
        return
    kept = _Kept(out, err)
    try:
        with terminal.on_hand_over(kept.release):
            yield
    except KeyboardInterrupt:
        kept.release()
        raise
    finally:
        kept.end(words)


class _Kept:
    """What was said, in the order of the streams, until it is shown."""

    def __init__(self, out: SeenStream, err: SeenStream) -> None:
        self._streams = out, err
        self._answer = _Collector(out.stream, self, answers=True)
        self._after = _Collector(err.stream, self, answers=False)
        out.stream, err.stream = self._answer, self._after
        self._held = contextlib.ExitStack()

    @property
    def begun(self) -> bool:
        """Whether there is something of the answer."""
        return bool(self._answer.parts)

    def hold(self) -> None:
        """Nothing is drawn any more: standard error waits for the answer."""
        if not self.begun:
            self._held.enter_context(LINE.held())

    def release(self) -> None:
        """Write everything, and keep no more."""
        self._let_go()
        for one in (self._answer, self._after):
            one.stream.write("".join(one.parts))
            one.stream.flush()
            one.parts.clear()

    def end(self, words: Sequence[str]) -> None:
        self._let_go()
        text = "".join(self._answer.parts)
        if not (_is_long(text) and _shown_by(words, text)):
            self.release()
            return
        self._answer.parts.clear()
        self.release()

    def _let_go(self) -> None:
        self._held.close()
        for wrapped, one in zip(self._streams, (self._answer, self._after), strict=True):
            if wrapped.stream is one:
                wrapped.stream = one.stream


class _Collector:
    """Stands for a stream of the terminal; standard error goes through until the answer has begun."""

    def __init__(self, stream: Any, kept: _Kept, *, answers: bool) -> None:
        self.stream = stream
        self.parts: list[str] = []
        self._kept, self._answers = kept, answers

    def write(self, text: str) -> int:
        if not self._answers and not self._kept.begun:
            return int(self.stream.write(text))
        if self._answers:
            self._kept.hold()
        self.parts.append(text)
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _attended() -> bool:
    return all(map(terminal.is_terminal, (sys.stdin, sys.stdout))) and not terminal.is_dumb()


def _is_long(text: str) -> bool:
    """Whether a screen is too small for it; a line of it is for the prompt."""
    wide, high = shutil.get_terminal_size()
    rows = sum(max(1, -(-len(_DRAWN.sub("", line)) // max(1, wide))) for line in text.splitlines())
    return rows > high - 1


def _shown_by(words: Sequence[str], text: str) -> bool:
    """Whether the pager could be started. That it ends early, or badly, is its user's choice."""
    environment = {**SETTINGS, **os.environ}
    try:
        # the user's own pager, without a shell
        program = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)  # noqa: S603
    except OSError:
        return False
    assert program.stdin
    with contextlib.suppress(OSError):  # it has ended before the end of the text
        program.stdin.write(text.encode("utf-8", "backslashreplace"))
    with contextlib.suppress(OSError):
        program.stdin.close()
    while True:
        try:
            return program.wait() not in _NOT_RUN
        except KeyboardInterrupt:  # the pager's: it has got it, too
            continue
