"""The offer to bootstrap an account for the CDK, where preflight finds that it is not."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ultracluster.account.preflight import Report


def offer(report: Report) -> bool:
    """Ask on a terminal whether to bootstrap; whether it was done, so that preflight is asked again.

    Elsewhere nothing is asked: preflight's row names the command.
    """
    row = next(
        (one for one in report.rows if one.what == "CDK bootstrap" and one.level == "red" and one.do), None
    )
    if row is None or not sys.stdin.isatty():
        return False
    typer.echo(f"{row.what}: {row.found}", err=True)
    try:
        wanted = typer.confirm(f"Run `{row.do}` now?", err=True)
    except typer.Abort:
        typer.echo("", err=True)
        return False
    return wanted and _run(row.do)


def _run(command: str) -> bool:
    import shutil
    import subprocess

    words = shlex.split(command)
    if words[0] == "npx" and shutil.which(words[1]):
        words = words[1:]  # the project's own CDK, which make puts on the PATH
    try:
        done = subprocess.run(words, check=False)  # noqa: S603, no shell; account and Region are AWS's own
    except FileNotFoundError:
        typer.echo(f"there is no {words[0]} on this machine: `make setup` installs the CDK", err=True)
        return False
    if done.returncode:
        typer.echo(f"`{command}` ended with status {done.returncode}", err=True)
    return done.returncode == 0
