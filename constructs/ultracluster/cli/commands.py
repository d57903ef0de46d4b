"""Commands that are loaded when they are asked for, so that no command waits for the others' imports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from ultracluster.cli.json_output import forget_json, write_error
from ultracluster.cli.output import seen_output

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
    "explain-placement": "explain_placement.explain_placement",
    "image": "app",
    "import": "import_.import_environment",
    "init": "init",
    "job": "app",
    "move": "move",
    "new": "new",
    "nodes": "app",
    "observability": "app",
    "permissions": "permissions",
    "plan": "plan",
    "preflight": "preflight",
    "prices": "app",
    "release": "app",
    "render": "app",
    "software": "app",
    "synth": "synth",
    "teams": "app",
    "users": "app",
    "validate": "validate",
    "wait": "wait",
}
"""What each command is in its module: a group of commands, or one function. The module of this package is
called like the command; another name of a module stands before a dot."""


class Commands(TyperGroup):
    """A group that finds those commands in their modules, and that says with --json what is wrong with a
    command line as JSON, too."""

    _json = False

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        forget_json()
        self._json = "--json" in (sys.argv[1:] if args is None else args)
        with seen_output():
            return super().main(args, *rest, **settings)

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with self._refusals():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with self._refusals():
            return super().invoke(ctx)

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
        except typer.TyperException as error:
            if self._json:
                write_error(error.format_message(), code=error.exit_code)
            raise

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
