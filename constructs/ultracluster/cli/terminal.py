"""How a person wants the output: with or without notes, colours, progress and pages.

Light: every command imports it, and nothing here imports rich.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

PIPED = 100
"""Columns where there is no terminal to ask, and COLUMNS is not set."""
ACCOUNT_DIGITS = 12
PART = "ULTRACLUSTER_PART"
"""Variable of a command that another one has started: it waits for no reader, and names no next step."""


class WrappedStream:
    """A stream that stands before another one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream


class Wishes:
    """What the options say that every command takes; threads read it, too."""

    quiet = False
    paged = True
    account = ""
    """Account that a command may change, of `--account` or of a person's answer."""
    changes = ""
    """The command at work, if it changes something in the account."""

    @classmethod
    def reset(cls) -> None:
        cls.quiet, cls.paged, cls.account, cls.changes = False, True, "", ""


@contextmanager
def asked() -> Generator[None]:
    """For one command: what the options of another said is forgotten."""
    Wishes.reset()
    try:
        yield
    finally:
        Wishes.reset()


def _quiet(wanted: bool) -> None:
    Wishes.quiet = Wishes.quiet or wanted


def _unpaged(wanted: bool) -> None:
    Wishes.paged = Wishes.paged and not wanted


def _in_account(wanted: str | None) -> None:
    if wanted is None:
        return
    if not (len(wanted) == ACCOUNT_DIGITS and wanted.isascii() and wanted.isdigit()):
        raise typer.BadParameter(f"an account has {ACCOUNT_DIGITS} digits")
    Wishes.account = wanted


QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No notes, hints and progress: only answers, findings and errors.",
        callback=_quiet,
        is_eager=True,
        expose_value=False,
    ),
]
NoPagerOption = Annotated[
    bool,
    typer.Option(
        "--no-pager",
        help="Do not show a long answer page by page.",
        callback=_unpaged,
        is_eager=True,
        expose_value=False,
    ),
]
AccountOption = Annotated[
    str | None,
    typer.Option(
        "--account",
        metavar="ID",
        help="The account to change; required without a terminal where the file names none.",
        callback=_in_account,
        is_eager=True,
        expose_value=False,
        show_default=False,
    ),
]


def common_options(quiet: QuietOption = False, no_pager: NoPagerOption = False) -> None:
    """The options that stand before or after every command."""


def account_option(account: AccountOption = None) -> None:
    """The option of every command that changes something in an account."""


def quiet() -> bool:
    """Whether nothing but answers, findings and errors is wanted."""
    return Wishes.quiet


def remark(text: str) -> None:
    """A line for a person who looks on, on standard error: what was done, what to know. None with --quiet."""
    if not Wishes.quiet:
        typer.echo(text, err=True)


def is_part() -> bool:
    """Whether another of our commands has started this one."""
    return bool(os.environ.get(PART))


def is_dumb() -> bool:
    """Whether the terminal can only print lines."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def shows_progress() -> bool:
    """Whether somebody looks at standard error, on a terminal that can draw a line again."""
    return not Wishes.quiet and not is_dumb() and is_terminal(sys.stderr)


def coloured(stream: Any = None) -> bool:
    """Whether text for a stream, standard output by default, has colours.

    NO_COLOR, if it is not empty, says no; then FORCE_COLOR and CLICOLOR_FORCE say yes; else it is a terminal.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return not is_dumb() and is_terminal(sys.stdout if stream is None else stream)


def width(piped: int = PIPED) -> int:
    """Columns for text that is laid out: those of the terminal, else of COLUMNS, else `piped`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    if not is_terminal(sys.stdout):
        return piped
    return shutil.get_terminal_size().columns


_before_others: list[Callable[[], None]] = []


@contextmanager
def on_hand_over(do: Callable[[], None]) -> Generator[None]:
    """Call this inside, whenever the terminal is somebody else's for a while."""
    _before_others.append(do)
    try:
        yield
    finally:
        _before_others.remove(do)


def hand_over() -> None:
    """Call before a person is asked, or another program gets the terminal: nothing is drawn over them."""
    for do in tuple(_before_others):
        do()


def is_terminal(stream: Any) -> bool:
    """Whether a stream is there, open, and a terminal."""
    try:
        return bool(stream is not None and stream.isatty())
    except ValueError:  # it is closed
        return False
