"""Tokens of Slurm's REST API, read by another project's library, with the claims that AWS's guide lists."""

from __future__ import annotations

import dataclasses
import os

import pytest
from joserfc import errors, jwt
from joserfc.jwk import OctKey
from kubernetes_support import environment

from ultracluster.model import resolve
from ultracluster.model.people import people
from ultracluster.slurm.rest_token import claims, signed

USERS = {
    "alice": {"uid": 2001, "groups": [{"vision": 3000}]},
    "bob": {"uid": 2002, "gid": 3000, "groups": [{"data": 3001}, "vision"]},
}
REQUIRED = {"exp", "iat", "uid", "gid", "id"}
REQUIRED_OF_ID = {"name", "gecos", "dir", "shell", "gids"}
KEY = os.urandom(32)


def said(name: str) -> dict[str, object]:
    known = people(resolve(environment({"users": USERS}, base="pcs-p6-b200")))
    person = next(one for one in known.accounts if one.name == name)
    return claims(person, known, now=1_800_000_000, seconds=600)


def test_a_library_reads_what_is_signed() -> None:
    read = jwt.decode(signed(said("alice"), KEY), OctKey.import_key(KEY), algorithms=["HS256"])

    assert read.header == {"alg": "HS256", "typ": "JWT"}
    assert read.claims == said("alice")
    with pytest.raises(errors.BadSignatureError):
        jwt.decode(signed(said("alice"), KEY), OctKey.import_key(os.urandom(32)), algorithms=["HS256"])


@pytest.mark.parametrize(
    ("name", "gid", "gids"), [("alice", 2001, [2001, 3000]), ("bob", 3000, [3000, 3001])]
)
def test_it_says_who_somebody_is_as_nodes_know_them(name: str, gid: int, gids: list[int]) -> None:
    found = said(name)
    identity = found["id"]

    assert set(found) == REQUIRED
    assert isinstance(identity, dict) and set(identity) == REQUIRED_OF_ID
    assert (found["gid"], identity["gids"]) == (gid, gids)
    assert identity["dir"] == f"/home/{name}"
    assert (found["iat"], found["exp"]) == (1_800_000_000, 1_800_000_600)


def test_without_groups_there_is_the_users_own() -> None:
    known = people(resolve(environment({"users": USERS}, base="pcs-p6-b200")))
    alone = dataclasses.replace(known.accounts[0], groups=())
    assert claims(alone, known, now=0, seconds=1)["id"]["gids"] == [2001]
