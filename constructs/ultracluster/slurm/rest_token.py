"""Tokens of Slurm's REST API on AWS PCS (its User Guide, "Authenticating with Slurm REST API in AWS PCS").

A JSON Web Token (RFC 7519), signed with HS256 by the cluster's key. PCS refuses what `scontrol token` writes:
its daemon knows no users, so the token itself says who somebody is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from ultracluster.model.people import Account, People

SHELL = "/bin/bash"


def claims(person: Account, people: People, *, now: int, seconds: int) -> dict[str, Any]:
    """What the token says of a person.

    The name is inside of `id`, where every Slurm version of PCS reads it; elsewhere a second one would win
    before 26.05.

    Args:
        person: whose token it is.
        people: with the ids of groups.
        now: seconds since 1970.
        seconds: how long it is good for.
    """
    groups = {person.gid, *(people.groups[name] for name in person.groups)}
    return {
        "exp": now + seconds,
        "iat": now,
        "uid": person.uid,
        "gid": person.gid,
        "id": {
            "name": person.name,
            "gecos": person.name,
            "dir": person.home,
            "shell": SHELL,
            "gids": sorted(groups),
        },
    }


def signed(claims: dict[str, Any], key: bytes) -> str:
    """The token: header, claims and signature."""
    head = _encoded(_json({"alg": "HS256", "typ": "JWT"}))
    text = f"{head}.{_encoded(_json(claims))}"
    return f"{text}.{_encoded(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encoded(value: bytes) -> str:
    """Base64 for addresses, without the equals signs at the end."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
