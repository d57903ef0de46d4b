"""Questions on a terminal. They go to standard error: standard output is for the answer of the command.

Typer's own prompts write a blank to standard output, in front of the first line of a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

import typer

from ultracluster.cli.terminal import hand_over, is_terminal

Word = TypeVar("Word", bound=str)


def can_ask() -> bool:
    """Whether a person can answer."""
    return is_terminal(sys.stdin)


def ask(question: str, default: Any, *, kind: Callable[[str], Any] = str) -> Any:
    """An answer; an empty one is the default, if there is one. Asks again while `kind` raises ValueError.

    Raises:
        typer.Abort: the input ends.
    """
    hand_over()
    while True:
        typer.echo(f"{question}{'' if default is None else f' [{default}]'}: ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            typer.echo("", err=True)
            raise typer.Abort
        text = line.strip() or ("" if default is None else str(default))
        try:
            if text:
                return kind(text)
        except ValueError as error:
            typer.echo(f"  {error}", err=True)


def ask_one_of(question: str, choices: Collection[Word], default: Word) -> Word:
    """One of the choices; asks again until it is."""

    def known(text: str) -> Word:
        if text not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return cast("Word", text)

    return ask(f"{question} ({', '.join(choices)})", default, kind=known)


def ask_whether(question: str) -> bool:
    """Yes or no; no by default."""

    def yes(text: str) -> bool:
        if text.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("y or n")
        return text.lower().startswith("y")

    return ask(f"{question} (y, n)", "n", kind=yes)
