"""Entry point of the `ultracluster` command."""

from __future__ import annotations

from typing import Annotated

import typer

from ultracluster.cli.commands import Commands
from ultracluster.version import __version__

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="GPU and Trainium training clusters on AWS from one YAML file.",
)


def main() -> None:
    """Entry point of the console script."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ultracluster {__version__}")
        raise typer.Exit


@app.callback()
def _root(  # pyright: ignore[reportUnusedFunction]  # options of the command as a whole
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    del version
