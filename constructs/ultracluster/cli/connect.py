"""`ultracluster connect`: a shell on a node through SSM Session Manager."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account import sessions
from ultracluster.account.aws import AccountError
from ultracluster.account.nodes import node as nodes
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import hand_over, remark
from ultracluster.jobs.queue.person import no_such_user
from ultracluster.model import resolve
from ultracluster.model.login import user_document

if TYPE_CHECKING:
    from ultracluster.config import Environment


def connect(
    environment: EnvironmentArgument,
    node: Annotated[
        str | None,
        typer.Argument(
            help="Instance id, host name or address; the first login node by default.", show_default=False
        ),
    ] = None,
    execute: Annotated[bool, typer.Option("--exec", help="Open the session instead of printing it.")] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="As the image's user, who may sudo; people's session may not.")
    ] = False,
    user: Annotated[
        str,
        typer.Option("--as", metavar="USER", help="As this user of the environment.", show_default=False),
    ] = "",
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the command that opens a shell on a node. Exit code 2 if there is no such node."""
    config = load_environment(environment)
    if user and admin:
        refuse("--as and --admin exclude each other")
    document = _document_of(config, user) if user else ""
    account = open_account(config, profile)
    try:
        fleet = Fleet(account, resolve(config))
    except AccountError as error:
        refuse(str(error))
    if node is None:
        found = fleet.entrance()
        why = "there is no node to log in to yet"
    else:
        found = next(iter(nodes.find(fleet.nodes, [node])[0]), None)
        why = f"no such node{nodes.nearest(node, fleet.nodes)}"
    why = sessions.ready(found) if found else why
    if why or found is None:
        refuse(why)
    session = sessions.open_session(
        account,
        config.stack_names,
        found,
        fleet.cluster.id if fleet.cluster else None,
        admin=admin,
        user_document=document,
    )
    if admin and not session.document:
        refuse(session.note)
    if session.note:
        remark(session.note)
    if as_json:
        write_json("connect", session)
    elif not execute:
        typer.echo(shlex.join(session.command))
    if execute:
        _run(session.command)


def _document_of(config: Environment, user: str) -> str:
    """Name of the user's session document."""
    known = config.users.get(user)
    if known is None:
        refuse(no_such_user(config, user))
    if not known.principals:
        refuse(f"`{user}` has no principals, and so no session document: write them and deploy")
    return user_document(config, user)


def _run(command: list[str]) -> None:
    hand_over()
    try:
        finished = subprocess.run(command, check=False)  # noqa: S603, no shell; the words are AWS's own ids
    except FileNotFoundError:
        refuse("the AWS CLI is not installed; it and its Session Manager plugin open sessions")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(finished.returncode)
