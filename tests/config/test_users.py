"""Users in an environment file: only names, ids and keys that nodes take as they are."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ultracluster.config.base import FROM_FILE
from ultracluster.config.users import PrincipalPattern, PublicKey, User, UserName

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"


def takes(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value, context=FROM_FILE)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", ["alice", "a", "_svc", "a-b_c9", "a" * 32])
def test_names(name: str) -> None:
    assert takes(UserName, name)


@pytest.mark.parametrize(
    "name", ["", "Alice", "1a", "-a", "a" * 33, "a b", "a\n", "a:b", "a$", "al\u0456ce", "../a"]
)
def test_what_is_no_name(name: str) -> None:
    assert not takes(UserName, name)


@pytest.mark.parametrize(
    "key",
    [
        KEY, f"{KEY} alice@example.com", KEY.replace("ssh-ed25519", "ssh-rsa"),
        KEY.replace("ssh-ed25519", "ecdsa-sha2-nistp256"),
        KEY.replace("ssh-ed", "sk-ssh-ed").replace("19 ", "19@openssh.com "),
    ],
)  # fmt: skip
def test_keys(key: str) -> None:
    assert takes(PublicKey, key)


@pytest.mark.parametrize(
    "key",
    [
        "", "ssh-ed25519", f'command="rm -rf /" {KEY}', f"{KEY}\n{KEY}", f"{KEY} a\nb", f"no-pty {KEY}",
        "-----BEGIN OPENSSH PRIVATE KEY-----", KEY.replace("ssh-ed25519", "ssh-dss"), f"# {KEY}",
        f"{KEY} \u202e",
    ],
)  # fmt: skip
def test_what_is_no_key(key: str) -> None:
    assert not takes(PublicKey, key)


def test_principals_are_roles_and_users_of_an_account() -> None:
    for good in ("arn:aws:iam::111122223333:role/team/alice", "arn:aws-cn:iam::111122223333:user/a*"):
        assert takes(PrincipalPattern, good)
    for bad in (
        "*",
        "arn:aws:iam::*:role/alice",
        "arn:aws:iam::111122223333:root",
        "arn:aws:iam::111122223333:role/a b",
    ):
        assert not takes(PrincipalPattern, bad)


def test_groups_are_names_with_or_without_an_id() -> None:
    user = User(uid=2001, groups=("vision", {"data": 3001}))
    assert user.groups == ("vision", {"data": 3001})
    for bad in (
        {"uid": "2001"},
        {"uid": True},
        {"uid": -1},
        {"uid": 2**31},
        {"uid": 2001, "groups": [{"data": "1"}]},
        {},
    ):
        with pytest.raises(ValidationError):
            User.model_validate(bad)
