"""What preflight says: rows, and the questions that give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, is_denied
from ultracluster.account.preflight.public_address import http_status
from ultracluster.account.quotas.values import QuotaState
from ultracluster.config import Environment
from ultracluster.model import Cluster

Level = Literal["red", "yellow", "green", "unknown"]
Group = Literal[
    "account", "quotas", "zone", "capacity", "network", "storage", "roles", "permissions", "software"
]


@dataclass(frozen=True, slots=True)
class Row:
    """One answer."""

    what: str
    """What was looked at."""
    level: Level
    """`red` stops a deploy or loses the capacity; `yellow` is for a person to judge; `unknown` could not be
    told."""
    found: str
    do: str = ""
    """What to do about it; empty where there is nothing."""
    quota: QuotaState | None = None
    """The figures behind a row about a quota."""
    unread: bool = False
    """The call failed: denied, throttled, no network."""
    starts: datetime | None = None
    """When capacity begins, where it has not yet."""


@dataclass(frozen=True, slots=True)
class Question:
    """One or a few calls to AWS that give some rows."""

    group: Group
    what: str
    ask: Callable[[], Iterable[Row]]
    """May raise any of `AWS_ERRORS`, `AccountError` or `LookupError`: `answer` makes a row of it."""

    def answer(self) -> list[Row]:
        """The rows; where the question cannot be put, one that says why."""
        try:
            return list(self.ask())
        except (AccountError, *AWS_ERRORS) as error:
            return [unreadable(self.what, error)]
        except LookupError as error:  # a member that AWS's models do not require, or a list without elements
            found = f"an answer of AWS lacks what is read here ({type(error).__name__}: {error})"
            return [Row(self.what, "unknown", found, unread=True)]
        except UnicodeEncodeError:  # half a character, which no call takes
            return [
                Row(self.what, "unknown", "an answer of AWS is no text that can be asked for", unread=True)
            ]


@dataclass(frozen=True, slots=True)
class Situation:
    """What every question needs."""

    account: Account
    cluster: Cluster
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    http_status: Callable[[str], int] = http_status
    """Status of a HEAD request to a public address."""

    @property
    def environment(self) -> Environment:
        """Return what the file asks for."""
        return self.cluster.environment

    def client(self, service: str) -> Any:
        return self.account.client(service)


def unreadable(what: str, error: Exception) -> Row:
    """The row of a call that failed."""
    if code(error) in _GONE or code(error).endswith(".NotFound"):
        return Row(what, "red", explain(error), "check id, account and Region")
    return Row(what, "unknown", explain(error), ALLOW if is_denied(error) else "", unread=True)


def worst(rows: Iterable[Row]) -> Level:
    """The level that counts: red before yellow, yellow before unknown."""
    levels = {row.level for row in rows}
    for level in ("red", "yellow", "unknown"):
        if level in levels:
            return level
    return "green"


ALLOW = "let these credentials do it (`ultracluster permissions` prints the policy), or ask someone who may"
_GONE = {
    "ResourceNotFound",
    "ResourceNotFoundException",
    "NotFoundException",
    "NatGatewayNotFound",
    "NoSuchEntity",
}
