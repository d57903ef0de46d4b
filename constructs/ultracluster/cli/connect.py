"""`ultracluster connect`: a shell on a node, or SSH to it, through SSM Session Manager."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.account import sessions, ssh_config
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes import node as nodes
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.account.ssh_config import Login
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
from ultracluster.config import Environment
from ultracluster.jobs.queue.person import no_such_user, person_session
from ultracluster.jobs.queue.person_session import PersonSession, missing_programs
from ultracluster.jobs.queue.protocol import NoSuchJobError
from ultracluster.jobs.queue.slurm_queue import SlurmQueue, checked
from ultracluster.model import Cluster, resolve
from ultracluster.model.login import user_document

NO_SSH = (
    "users have no accounts on nodes of Kubernetes. `ultracluster job shell` opens a pod, and an editor "
    "attaches to it (docs/ssh.md)"
)


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
    as_ssh_config: Annotated[
        bool,
        typer.Option(
            "--ssh-config",
            help="Print entries of an SSH configuration instead, for every node or this one: for ssh, VS "
            "Code and JetBrains. No port opens.",
        ),
    ] = False,
    job: Annotated[
        str,
        typer.Option(
            "--job",
            help="With --ssh-config: entries for the nodes of your running job, such as a `job shell`.",
            show_default=False,
        ),
    ] = "",
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the command that opens a shell on a node. Exit code 2 if there is no such node."""
    if as_ssh_config:
        if execute or admin or as_json or (job and node):
            refuse("--ssh-config goes with --as and a node or --job, and not with --exec, --admin or --json")
        _print_ssh_config(load_environment(environment), node, job, user, profile)
        return
    if job:
        refuse("--job is for --ssh-config; `ultracluster job shell --job` opens a shell in a job")
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


def _print_ssh_config(
    config: Environment, name: str | None, job: str, user: str, profile: str | None
) -> None:

    cluster = resolve(config)
    if cluster.traits.kubernetes:
        refuse(f"this is {cluster.settings.kind}: {NO_SSH}")
    account = open_account(config, profile)
    try:
        who = ssh_config.login(config, user, Path.home() / ".ssh")
        fleet = Fleet(account, cluster)
        nodes = _job_nodes(account, cluster, fleet, job, user) if job else _meant(fleet, name)
    except (AccountError, NoSuchJobError, ssh_config.NoKeyError) as error:
        refuse(str(error))
    up = [node for node in nodes if not sessions.ready(node)]
    if not up:
        refuse(sessions.ready(nodes[0]) if nodes else "there is no node yet")
    entries = (
        ssh_config.job_hosts(config.name, job, up)
        if job
        else ssh_config.hosts(config.name, up, fleet.entrance())
    )
    cluster_id = fleet.cluster.id if fleet.cluster else None
    typer.echo(
        ssh_config.ssh_config(
            entries, who, region=account.region, profile=account.profile, cluster_id=cluster_id
        ),
        nl=False,
    )
    _remark_ssh(who, len(nodes) - len(up))


def _meant(fleet: Fleet, name: str | None) -> Sequence[Node]:
    """The node of this name, or all.

    Raises:
        AccountError: there is none of this name.
    """

    found = fleet.nodes if name is None else fleet.find([name])[0]
    if name is not None and not found:
        raise AccountError(f"no such node{nodes.nearest(name, fleet.nodes)}")
    return found


def _job_nodes(account: Account, cluster: Cluster, fleet: Fleet, job: str, user: str) -> Sequence[Node]:
    """The nodes of a job, as Slurm lists them.

    Raises:
        AccountError: Slurm cannot be asked, or the job has no nodes that are known here.
        NoSuchJobError: that is no number of one.
    """

    checked(job)
    if missing := missing_programs():
        raise AccountError(missing)
    own = cluster.environment.users.get(user)  # sessions are the shared user's where it has no principals
    session, who, place = person_session(account, cluster, user if own and own.principals else "")
    queue = SlurmQueue(PersonSession(session.command, user=who), place)
    try:
        addresses = queue.addresses(job)
    finally:
        queue.close()
    if not addresses:
        raise AccountError(f"job {job} runs on no node: it waits, or has ended")
    nodes, missing = fleet.find(addresses)
    if missing:
        raise AccountError(f"job {job} has nodes that AWS does not list: {', '.join(missing[:8])}")
    return nodes


def _remark_ssh(who: Login, left_out: int) -> None:
    if not who.identity:
        remark(f"no key of {who.user} is below ~/.ssh: ssh asks your agent, or add an IdentityFile")
    if left_out:
        remark(f"nodes: {left_out} not running, without an entry; print again when they run")


def _run(command: list[str]) -> None:
    hand_over()
    try:
        finished = subprocess.run(command, check=False)  # noqa: S603, no shell; the words are AWS's own ids
    except FileNotFoundError:
        refuse("the AWS CLI is not installed; it and its Session Manager plugin open sessions")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(finished.returncode)
