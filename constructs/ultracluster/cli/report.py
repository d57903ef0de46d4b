"""What all commands say things with: a refusal, tables, Markdown.

Light: commands that read no environment use it, too; what is drawn with rich is in `console`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from ultracluster.cli.json_output import write_refusal
from ultracluster.cli.progress import LateBar, bars, working
from ultracluster.config.plain_text import one_line, visible

if TYPE_CHECKING:
    from ultracluster.config.findings import Finding

__all__ = [
    "LateBar",
    "bars",
    "cell",
    "folded",
    "markdown",
    "markdown_row",
    "markdown_table",
    "refuse",
    "text_table",
    "working",
]

_MENTION = re.compile(r"(?<![\w.])@(?=[A-Za-z0-9])")


def refuse(why: str, findings: Sequence[Finding] = (), *, code: int = 2) -> NoReturn:
    """What is wrong on standard error, with --json on standard output, too; and exit code 2.

    Args:
        findings: those that `why` tells, where an environment file is what is wrong.
    """
    sys.stdout.flush()
    typer.echo(why, err=True)
    write_refusal(why, findings, code)
    raise typer.Exit(code) from None


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str] = ()) -> str:
    """Columns as wide as they need to be; the last one runs on, so nothing is cut.

    Args:
        numbers: heads of columns that end at the right.
    """
    lines = [heads, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads) - 1)]
    kinds = [str.rjust if head in numbers else str.ljust for head in heads[:-1]]
    return "\n".join(
        "  ".join(
            [*(fit(one, width) for fit, one, width in zip(kinds, line[:-1], widths, strict=True)), line[-1]]
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
