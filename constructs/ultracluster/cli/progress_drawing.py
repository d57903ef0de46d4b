"""The line of progress, and bars, as rich draws them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ultracluster.cli import terminal
from ultracluster.cli.console import Console
from ultracluster.config.plain_text import one_line


class Wait(Protocol):
    """Something that is waited for."""

    text: str
    done: int
    of: int


def live(newest: Callable[[], tuple[Wait, float]]) -> Live:
    """The line, of what is waited for and for how many seconds."""
    # the streams are ours already, and say before they write
    return Live(
        console=Console(stderr=True, force_terminal=True, no_color=not terminal.coloured(sys.stderr)),
        get_renderable=_Drawn(newest).now,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        refresh_per_second=8,
    )


class _Drawn:
    """The line as rich draws it."""

    def __init__(self, newest: Callable[[], tuple[Wait, float]]) -> None:
        self._newest = newest
        self._spinner = Spinner("line" if not _has_braille() else "dots")
        self._text = ""

    def now(self) -> Table:
        wait, seconds = self._newest()
        self._text = wait.text or self._text
        row = Table.grid(padding=(0, 1))
        row.add_column(no_wrap=True)
        row.add_column(no_wrap=True, overflow="ellipsis")
        cells: list[Any] = [self._spinner, Text(one_line(self._text))]
        if wait.of:
            row.add_column(no_wrap=True)
            row.add_column(no_wrap=True, justify="right")
            cells += [ProgressBar(total=wait.of, completed=wait.done, width=20), f"{wait.done}/{wait.of}"]
        row.add_column(no_wrap=True, justify="right")
        row.add_row(*cells, f"{seconds:.0f} s")
        return row


def _has_braille() -> bool:
    return "utf" in str(getattr(sys.stderr, "encoding", "") or "").lower()


class Bars(Progress):
    """Bars; while they are there, the line is not."""

    def __init__(self, hold: Callable[[], AbstractContextManager[None]], *columns: Any, before: str) -> None:
        self._hold = hold
        self._held: AbstractContextManager[None] | None = None
        super().__init__(
            TextColumn(before, markup=False),
            BarColumn(),
            *columns,
            console=Console(stderr=True, no_color=not terminal.coloured(sys.stderr)),
            transient=True,
            disable=not terminal.shows_progress(),
        )

    def start(self) -> None:
        if self._held is None:
            self._held = self._hold()
            self._held.__enter__()
        super().start()

    def stop(self) -> None:
        super().stop()
        if self._held is not None:
            self._held.__exit__(None, None, None)
            self._held = None
