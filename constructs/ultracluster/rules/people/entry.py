"""Rules on: how users get in."""

from __future__ import annotations

import base64
import binascii

from ultracluster.config import Environment
from ultracluster.config.base import is_token
from ultracluster.config.remedy import ask, drop
from ultracluster.config.users import User
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.people.accounts import DATE
from ultracluster.rules.sets import USR
from ultracluster.rules.sources import RUN_AS

SHORTEST_RSA = 256
"""Bytes of the numbers of a key of 2048 bits; RequiredRSASize of sshd refuses shorter ones."""


@USR.warning(9, f"{RUN_AS}; sshd manual", DATE)
def user_has_login(user: User) -> Breaches:
    """A user can get in."""
    if not user.keys and not user.principals:
        yield at().breach(
            "neither a key nor a principal: the account is there, and nobody can open a session as it.",
            ask("fact", "principals: [arn:aws:iam::...:role/...], or keys: [ssh-ed25519 ...]"),
        )


@USR.error(10, "RFC 4253, 6.6; sshd manual", DATE)
def ssh_key_complete(user: User) -> Breaches:
    """A key is a whole public key."""
    for number, key in enumerate(user.keys):
        if why := _fault(key):
            yield at("keys", number).breach(
                f"it is no public key ({why}): sshd would pass over it.",
                drop().noting("copy the line of the .pub file whole"),
            )


@USR.warning(11, RUN_AS, DATE)
def login_belongs_to_one_user(environment: Environment) -> Breaches:
    """One key, or one principal, opens one user's sessions."""
    for field in ("keys", "principals"):
        seen: dict[str, str] = {}
        for name, user in environment.users.items():
            for number, one in enumerate(getattr(user, field)):
                word = " ".join(one.split()[:2])  # without the comment of a key
                first = seen.setdefault(word, name)
                if first != name:
                    yield at("users", name, field, number).breach(
                        f"`{first}` has the same: whoever has it works as either of them.", drop()
                    )


@USR.warning(12, "IAM User Guide, ArnLike", DATE)
def principal_is_specific(user: User) -> Breaches:
    """A principal is not everybody."""
    for number, pattern in enumerate(user.principals):
        if not is_token(pattern) and set(pattern.rsplit(":", 1)[-1].partition("/")[2]) <= set("*/"):
            yield at("principals", number).breach(
                "every role or user of the account may open sessions as this user.",
                ask("fact", f"{pattern.rsplit('/', 1)[0]}/name-of-the-role"),
            )


def _fault(key: str) -> str:
    kind, text = key.split(" ")[:2]
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "its text is no base64"
    parts: list[bytes] = []
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            return "its end is missing"
        parts.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    if not parts or parts[0] != kind.encode():
        return f"inside it says {parts[0].decode('ascii', 'replace') if parts else 'nothing'}, not {kind}"
    if kind == "ssh-rsa" and (len(parts) != 3 or len(parts[2].lstrip(b"\0")) < SHORTEST_RSA):
        return "an RSA key of less than 2048 bits"
    if kind == "ssh-ed25519" and [len(part) for part in parts[1:]] != [32]:
        return "an Ed25519 key has 32 bytes"
    return ""
