"""How a command says no. Light: commands that read no environment use it, too."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer


def refuse(why: str) -> NoReturn:
    """What is wrong on standard error, and exit code 2."""
    sys.stdout.flush()
    typer.echo(why, err=True)
    raise typer.Exit(2) from None
