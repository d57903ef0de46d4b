"""Commands that are loaded when they are asked for, so that no command waits for the others' imports."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "acceptance": "app",
    "capacity": "app",
    "choose": "choose",
    "connect": "connect",
    "cost": "cost",
    "deploy": "deploy",
    "destroy": "deploy.destroy",
    "diff": "diff",
    "doctor": "doctor",
    "image": "app",
    "init": "init",
    "job": "app",
    "new": "new",
    "nodes": "app",
    "permissions": "permissions",
    "plan": "plan",
    "preflight": "preflight",
    "prices": "app",
    "release": "app",
    "render": "app",
    "software": "app",
    "synth": "synth",
    "wait": "wait",
}
"""What each command is in its module: a group of commands, or one function. The module of this package is
called like the command; another name of a module stands before a dot."""


class Commands(TyperGroup):
    """A group that finds those commands in their modules."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].rpartition(".")
        found: typer.Typer | Callable[..., None] = getattr(
            import_module(f"ultracluster.cli.{module or cmd_name}"), name
        )
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command
