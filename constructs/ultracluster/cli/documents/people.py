"""Documents of people and teams: their accounts, and what a change of them is."""

from __future__ import annotations

from typing import Literal, TypedDict

from ultracluster.account.team_differences import TeamDifference


class UserRow(TypedDict):
    """One account."""

    name: str
    uid: int
    gid: int
    groups: list[str]
    """Names of further groups."""
    home: str
    keys: int
    """Public keys that nodes keep for the user."""
    principals: list[str]
    """IAM roles and users who may open sessions as this user."""
    team: str | None
    change: Literal["new", "changed", "removed", "same"] | None
    """Beside the document that nodes have; null where that was not asked for."""
    details: list[str]
    """What is changed, in words."""


class Users(TypedDict):
    environment: str
    users: list[UserRow]
    document: str | None
    """Where nodes find it; null where the account was not asked."""
    uploaded: bool
    """Whether this command wrote it."""
    notes: list[str]


class UserToken(TypedDict):
    environment: str
    user: str
    token: str
    """A JSON Web Token; whoever has it is that user in Slurm."""
    url: str
    """Of Slurm's REST API; empty where PCS names none yet."""
    ends: int
    """When the token ends, in seconds since 1970."""


class Teams(TypedDict):
    environment: str
    changes: list[TeamDifference]
    document: str
    """Where nodes find it."""
    uploaded: bool
    """Whether this command wrote it."""
    notes: list[str]
