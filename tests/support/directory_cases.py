"""A directory that breaks no rule, to be changed."""

from __future__ import annotations

from typing import Any

DIRECTORY: dict[str, Any] = {
    "kind": "ldap",
    "uris": ["ldaps://ldap.example.com"],
    "search_base": "dc=example,dc=com",
    "bind_dn": "cn=reader,dc=example,dc=com",
    "password_secret_arn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:reader-AbCdEf",
    "server_networks": ["10.20.0.0/24"],
}
THERE = DIRECTORY["password_secret_arn"].replace("us-east-1", "us-west-2")


def asks(**changes: Any) -> dict[str, Any]:
    """A directory with these changes; None takes a key away."""
    merged = DIRECTORY | changes
    return {"directory": {key: value for key, value in merged.items() if value is not None}}
