"""People who have an account on the nodes of a Slurm cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ultracluster.config.base import OR_TOKEN, Many, Model
from ultracluster.config.teams import TeamName

UserName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
"""Of a user or group, as useradd of every image takes it."""
AccountId = Annotated[int, Field(ge=1, le=2_147_483_647)]
"""A user or group id; rules say which are free."""
PublicKey = Annotated[
    str,
    Field(
        pattern=r"^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
        r" AAAA[A-Za-z0-9+/]{16,}={0,3}( [A-Za-z0-9@._+=:, -]{1,200})?$",
        max_length=4096,
        examples=["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI... alice@example.com"],
    ),
]
"""One line of a `.pub` file, without options."""
PrincipalPattern = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9_+=,.@/*-]+$",
        examples=["arn:aws:iam::111122223333:role/alice"],
    ),
    OR_TOKEN,
]
"""ARN of an IAM role or user, where `*` stands for any characters (`aws:PrincipalArn`)."""


class User(Model):
    """A person's account, the same on every node."""

    uid: AccountId
    """User id, the same on every node and for ever: files on the shared file systems belong to it."""
    gid: AccountId | None = None
    """Id of the user's own group; by default the user id."""
    groups: Many[UserName | dict[UserName, AccountId]] = ()
    """Further groups: a name, or `name: gid`. Each group needs its id once, with whichever user."""
    keys: Many[PublicKey] = ()
    """Public SSH keys, one line each; nodes keep them outside of homes. No port is open to the internet: they
    are for SSH through a session, and between nodes."""
    principals: Many[PrincipalPattern] = ()
    """IAM roles and users who may open sessions as this user; `*` stands for any characters. The user gets a
    session document of its own, and `ultracluster permissions ENV people --user NAME` the policy for it."""
    team: TeamName | None = None
    """Team whose Slurm account the user's jobs count for; the same as `users` of the team."""


__all__ = ["AccountId", "PrincipalPattern", "PublicKey", "User", "UserName"]
