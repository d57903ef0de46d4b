"""The commands of `ultracluster`, as its parser has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ultracluster.cli.main import app


def commands(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that is no group, by its words."""
    group = group or typer.main.get_command(app)
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def option_names(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
