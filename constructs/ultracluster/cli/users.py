"""`ultracluster users`: the accounts of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import EnvironmentArgument, JsonOption, ProfileOption
from ultracluster.cli.report import text_table
from ultracluster.model.people import people

if TYPE_CHECKING:
    pass

from ultracluster.cli.user_rows import cluster_of, user_of, user_row, write_users


def users(
    environment: EnvironmentArgument,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="USER",
            help="Print a token with which this user asks Slurm's REST API (AWS PCS with `rest: true`).",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=1440, help="How long the token is good for.")
    ] = 30,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the accounts of an environment file: ids, groups, homes. Asks nothing of AWS without --token.

    --token reads the cluster's signing key in Secrets Manager. Anyone who can read that key can act as any
    Slurm user. The token cannot be revoked before it expires.
    """
    if token is None:
        _list(environment, as_json=as_json)
    else:
        from ultracluster.cli.users_account import print_token  # 0.3 s: the SDK

        print_token(environment, token, minutes, profile, as_json=as_json)


def _list(environment: Path, *, as_json: bool) -> None:
    cluster = cluster_of(environment)
    known = people(cluster)
    if as_json:
        rows = [user_row(known, one.name, user_of(one.name, cluster)) for one in known.accounts]
        write_users(cluster, rows)
        return
    if not known.accounts:
        typer.echo("no users")
        return
    table = [
        (one.name, str(one.uid), str(one.gid), str(one.home), one.team or "-", ", ".join(one.groups) or "-")
        for one in known.accounts
    ]
    typer.echo(text_table(("user", "uid", "gid", "home", "team", "groups"), table, numbers=("uid", "gid")))
