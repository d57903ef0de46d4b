"""What all commands say things with: a refusal, tables, Markdown, and progress on standard error.

Light: commands that read no environment use it, too, and rich is imported where something is drawn with it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ultracluster.cli.json_output import write_refusal
from ultracluster.cli.output import Drawn
from ultracluster.config.plain_text import one_line, visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ultracluster.cli.console import Console
    from ultracluster.config.findings import Finding

_MENTION = re.compile(r"(?<![\w.])@(?=[A-Za-z0-9])")
LATE = 2.0
"""Seconds after which a bar of something short is worth showing."""


def refuse(why: str, findings: Sequence[Finding] = (), *, code: int = 2) -> NoReturn:
    """What is wrong on standard error, with --json on standard output, too; and exit code 2.

    Args:
        findings: those that `why` tells, where an environment file is what is wrong.
    """
    sys.stdout.flush()
    typer.echo(why, err=True)
    write_refusal(why, findings, code)
    raise typer.Exit(code) from None


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last one runs on, so nothing is cut."""
    lines = [heads, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads) - 1)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=True)), line[-1]]
        ).rstrip()
        for line in lines
    )


def cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return markdown(text).replace("|", "\\|").replace("\n", "<br>")


def markdown(text: str) -> str:
    """Text from outside in Markdown: it brings no HTML, no picture and no link, and names nobody on GitHub.

    What rules write between backticks stays as it is.
    """
    return _MENTION.sub("&#64;", visible(text).replace("<", "&lt;").replace("](", "]\\("))


def markdown_table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(markdown_row(row) for row in rows)]


def markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Markdown that opens when its title is clicked; nothing without lines."""
    if not lines:
        return []
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


class Paper:
    """A page to draw on with rich, whose text is then written at once."""

    def __init__(self, width: int | None, *, colour: bool, markup: bool = True) -> None:
        """
        Args:
            width: columns; None is that of the terminal.
            colour: whether the text is for a terminal.
        """
        from ultracluster.cli.console import Console

        self._target = StringIO()
        self.console: Console = Console(
            file=self._target, width=width, force_terminal=colour, highlight=False, markup=markup
        )

    def text(self) -> Drawn:
        """What is on the page, without blanks at the ends of lines."""
        return Drawn("\n".join(line.rstrip() for line in self._target.getvalue().splitlines()) + "\n")


@contextmanager
def working(text: str) -> Generator[Callable[[str], None]]:
    """A spinner on standard error that says what is done now; silent where that is no terminal.

    Yields what changes its text.
    """
    from ultracluster.cli.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.markup import escape

    with console.status(text) as status:
        yield lambda text: status.update(escape(text))


def bars(*columns: Any, before: str = "{task.description}") -> Progress:
    """Bars on standard error with more columns behind; silent where that is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    from ultracluster.cli.console import Console

    console = Console(stderr=True)
    return Progress(
        TextColumn(before, markup=False),
        BarColumn(),
        *columns,
        console=console,
        disable=not console.is_terminal,
    )


class LateBar:
    """A progress bar on standard error for what takes longer than two seconds.

    Call it with what is done and how much there is.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> LateBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar[0].stop()

    def __call__(self, done: int, of: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < LATE:
                return
            from rich.progress import Progress

            from ultracluster.cli.console import Console

            progress = Progress(console=Console(stderr=True), transient=True)
            self._bar = (progress, progress.add_task(self._what))
            progress.start()
        self._bar[0].update(self._bar[1], completed=done, total=of)
