"""Entries of an SSH configuration whose way to a node is a session of Session Manager: no port is open.

Works for HyperPod's targets, too: awslabs/awsome-distributed-ai#73 (merged 2023-12-12) has this ProxyCommand
with `sagemaker-cluster:...`, and #280 (2024-04-22) what it answers where the node is not connected. The
document: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session
Manager" (read 2026-11-28).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ultracluster.account.nodes.node import Node
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.plain_text import one_line
from ultracluster.config.users import User
from ultracluster.model.login import SSH_DOCUMENT, hyperpod_target, start_session

LONGEST = 16_384
"""Bytes of a file that may be a public key."""
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,127}")
"""A user of a directory; without blanks and `%`, which mean something in an SSH configuration."""


class NoKeyError(Exception):
    """Nobody can be logged in by a key; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Login:
    """The user who logs in, and the key of this machine for it."""

    user: str
    identity: str = ""
    """Path of the key below the home, as OpenSSH reads it; empty where an agent or a setting of one's own
    must know it."""


@dataclass(frozen=True, slots=True)
class Host:
    """One entry."""

    names: tuple[str, ...]
    node: Node


def login(environment: Environment, wanted: str, folder: Path) -> Login:
    """The user whose key is on this machine.

    Args:
        wanted: the user by name, also of the directory; empty to find out by the keys.
        folder: where this machine has its keys, `~/.ssh`.

    Raises:
        NoKeyError: no user has a key, or none or several can be meant.
    """
    users = {name: user for name, user in environment.users.items() if user.keys}
    if wanted and wanted not in environment.users and _has_directory(environment):
        if not _NAME.fullmatch(wanted):
            raise NoKeyError(f"{one_line(wanted)!r} is no name of a user")
        return Login(wanted)  # with a key in the home folder of the node, which nobody knows here
    if not users or (wanted and wanted not in users):
        who = one_line(f"`{wanted}` has no keys") if wanted else f"no user of {environment.name} has keys"
        name = wanted if wanted in environment.users else "NAME"
        raise NoKeyError(
            f"{who}, and sshd accepts nothing else: write users.{name}.keys, then `ultracluster apply users`"
        )
    here = dict(_own_keys(folder))
    found = {name: files[0] for name, user in users.items() if (files := _files(user, here))}
    if wanted:
        return Login(wanted, found.get(wanted, ""))
    if len(found) == 1:
        return Login(*next(iter(found.items())))
    several = "several users have" if found else "no user has"
    names = " or --as ".join(list(found or users)[:8])
    raise NoKeyError(f"{several} a key of {folder}: --as {names}")


def hosts(environment: str, nodes: Iterable[Node], entrance: Node | None) -> list[Host]:
    """An entry for each node, the one where people log in first, which the environment's name means, too."""
    ordered = sorted(nodes, key=lambda node: node is not entrance)
    return [
        Host(
            (
                *([environment] if node is entrance else []),
                f"{environment}-{node.dns.split('.')[0] or node.id}",
            ),
            node,
        )
        for node in ordered
    ]


def job_hosts(environment: str, job: str, nodes: Iterable[Node]) -> list[Host]:
    """An entry for each node of a job: `dev-job-42` is the first, `dev-job-42-2` the second."""
    name = f"{environment}-job-{job}"
    return [Host((f"{name}-{at}" if at > 1 else name,), node) for at, node in enumerate(nodes, 1)]


def ssh_config(
    entries: Iterable[Host], who: Login, *, region: str, profile: str = "", cluster_id: str | None = None
) -> str:
    """The text of an SSH configuration.

    Args:
        cluster_id: last part of the HyperPod cluster's ARN; none for instances of the account.
    """
    return "\n".join(_entry(one, who, region, profile, cluster_id) for one in entries)


def _entry(host: Host, who: Login, region: str, profile: str, cluster_id: str | None) -> str:
    node = host.node
    target = hyperpod_target(cluster_id, node.group, node.id) if cluster_id else node.id
    words = start_session(target, region=region, document=SSH_DOCUMENT, profile=profile)
    words = [word.replace("%", "%%") for word in words] + ["--parameters", "portNumber=%p"]
    key = {"IdentityFile": who.identity, "IdentitiesOnly": "yes"} if who.identity else {}
    # The name is the instance's id, by which its key is known: an address has another instance tomorrow. Its
    # first key is taken, because IAM and the session say whose it is
    lines = {
        "HostName": node.id, "User": who.user, **key, "StrictHostKeyChecking": "accept-new",
        "ServerAliveInterval": "60", "ProxyCommand": shlex.join(words),
    }  # fmt: skip
    return "\n".join(
        [f"Host {' '.join(host.names)}", *(f"  {name} {value}" for name, value in lines.items()), ""]
    )


def _has_directory(environment: Environment) -> bool:
    settings = environment.orchestrator
    own = settings.directory_service if isinstance(settings, ParallelCluster) else None
    return bool(environment.directory or own)


def _own_keys(folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Kind and bytes of each public key of this machine, and the path that OpenSSH is given."""
    for file in sorted(folder.glob("*.pub")):
        if not _PLAIN.fullmatch(file.name):
            continue
        try:
            if file.stat().st_size > LONGEST:
                continue
            words = file.read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            continue
        private = file.with_suffix("")
        # where only an agent has the private key, OpenSSH takes the public one for its name
        yield tuple(words[:2]), f"~/.ssh/{private.name if private.exists() else file.name}"


def _files(user: User, here: Mapping[tuple[str, ...], str]) -> list[str]:
    return [here[key] for one in user.keys if (key := tuple(one.split()[:2])) in here]


__all__ = ["Host", "Login", "NoKeyError", "hosts", "job_hosts", "login", "ssh_config"]
