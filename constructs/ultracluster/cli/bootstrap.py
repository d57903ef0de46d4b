"""The offer to bootstrap an account for the CDK, where preflight finds that it is not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.cli.terminal import hand_over, is_terminal
from ultracluster.nodejs import NoNodeError, with_node
from ultracluster.project.cdk_command import cdk_command
from ultracluster.project.place import ProjectError, find_root

if TYPE_CHECKING:
    from ultracluster.account.preflight import Report


def offer(report: Report) -> bool:
    """Ask on a terminal whether to bootstrap; whether it was done, so that preflight is asked again.

    Elsewhere nothing is asked: preflight's row names the command.
    """
    row = next(
        (one for one in report.rows if one.what == "CDK bootstrap" and one.level == "red" and one.do), None
    )
    if row is None or not is_terminal(sys.stdin):
        return False
    hand_over()
    typer.echo(f"{row.what}: {row.found}", err=True)
    try:
        wanted = typer.confirm(f"Run `{row.do}` now?", err=True)
    except typer.Abort:
        typer.echo("", err=True)
        return False
    return wanted and _run(row.do)


def _run(command: str) -> bool:
    hand_over()
    words = shlex.split(command)
    try:
        environment = with_node(os.environ)
        if words[0] == "npx":  # `cdk` is another package of npm, and its newest one is not the pinned one
            words = [*cdk_command(find_root() or Path.cwd(), environment), *words[2:]]
        # no shell; account and Region are AWS's own
        done = subprocess.run(words, env=environment, check=False)  # noqa: S603
    except (NoNodeError, ProjectError) as error:
        typer.echo(str(error), err=True)
        return False
    except FileNotFoundError:
        typer.echo(f"there is no {words[0]} on this machine", err=True)
        return False
    if done.returncode:
        typer.echo(f"`{command}` ended with status {done.returncode}", err=True)
    return done.returncode == 0
