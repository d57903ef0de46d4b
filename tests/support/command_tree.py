"""The commands of `ultracluster`, as its parser has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from ultracluster.cli.main import app


@cache
def commands() -> tuple[tuple[str, Any], ...]:
    """Every command that is no group, by its words."""
    return tuple(_below(typer.main.get_command(app), ""))


def _below(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _below(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def option_names(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
