"""Whose session it is: the person's own document, and never one whose user may sudo."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ultracluster.account import sessions
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.sessions import Session
from ultracluster.config import Environment
from ultracluster.config.plain_text import one_line
from ultracluster.model import Cluster
from ultracluster.model.login import user_document

_ASSUMED = re.compile(r"arn:(?P<partition>[a-z-]+):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/.*")


class NoPersonError(AccountError):
    """It is not said as whom, or nobody of that name has sessions."""


def person_of(environment: Environment, wanted: str, identity: str = "") -> str:
    """The user as whom sessions are; empty for the one user whom all share.

    Args:
        wanted: by name; empty to find out.
        identity: ARN of who asks, which the users' principals are held against.

    Raises:
        NoPersonError: there is none, or more than one could be meant.
    """
    users = {name: user for name, user in environment.users.items() if user.principals}
    if wanted:
        if wanted in users:
            return wanted
        if wanted in environment.users:
            raise NoPersonError(
                f"`{wanted}` has no principals, and so no session document: write them and deploy"
            )
        raise NoPersonError(no_such_user(environment, wanted))
    if not users:
        return ""
    meant = [
        name for name, user in users.items() if any(_is(identity, principal) for principal in user.principals)
    ]
    if len(meant) == 1:
        return meant[0]
    if len(users) == 1 and not identity:
        return next(iter(users))
    who = f"{identity or 'who asks'} is {'none' if not meant else 'more than one'} of the users' principals"
    raise NoPersonError(f"{who}: --as {' or --as '.join(meant or list(users)[:8])}")


def no_such_user(environment: Environment, wanted: str) -> str:
    """Return the error for a name that no user has, with the names of users."""
    near = difflib.get_close_matches(wanted, environment.users, 1)
    known = ", ".join(near or sorted(environment.users)[:8])
    there_is = f"but {known}" if known else "the environment has no `users`"
    return one_line(f"there is no user `{wanted[:100]}`, {there_is}")


def _is(identity: str, principal: str) -> bool:
    """Return whether who asks may be that principal. An assumed role has no path here."""
    assumed = _ASSUMED.fullmatch(identity)
    if assumed is None:
        return fnmatchcase(identity, _literal(principal))
    start, _, name = principal.rpartition("/")
    own = f"arn:{assumed['partition']}:iam::{assumed['account']}:role"
    return (start == own or start.startswith(f"{own}/")) and fnmatchcase(assumed["role"], _literal(name))


def _literal(pattern: str) -> str:
    """A pattern of IAM, where only `*` stands for something."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def person_session(account: Account, cluster: Cluster, wanted: str = "") -> tuple[Session, str, str]:
    """The session on the node where people log in; its user where that is known, and what the node is called.

    Raises:
        AccountError: there is no such node, or no document of an ordinary user.
    """
    environment = cluster.environment
    named = any(user.principals for user in environment.users.values())
    user = person_of(environment, wanted, account.identity().arn if named and not wanted else "")
    fleet = Fleet(account, cluster)
    node = fleet.entrance()
    why = (
        sessions.ready(node)
        if node
        else "there is no node to log in to yet: deploy the environment, and wait"
    )
    if why or node is None:
        raise AccountError(why)
    session = sessions.open_session(
        account, environment.stack_names, node, fleet.cluster.id if fleet.cluster else None,
        user_document=user_document(environment, user) if user else "",
    )  # fmt: skip
    if not session.document:  # the account's default document is of a user who may sudo
        raise AccountError(
            f"no session of an ordinary user can be opened: {session.note.partition(';')[0]}. Deploy the "
            "environment, or let an administrator give you its session document"
        )
    return session, user or environment.session_user, node.name


def planned(environment: Environment, wanted: str = "") -> Sequence[str]:
    """User and document as far as they are known without the account.

    Raises:
        NoPersonError: there is no such user.
    """
    user = person_of(environment, wanted) if wanted else ""
    if user:
        return user, user_document(environment, user)
    if any(user.principals for user in environment.users.values()):
        return "the user whose principal asks", f"{environment.stack_name('cluster')}-as-..."
    return environment.session_user, f"{environment.stack_name('cluster')}-Session..."


__all__ = ["NoPersonError", "person_of", "person_session", "planned"]
