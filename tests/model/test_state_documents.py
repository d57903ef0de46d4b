"""Documents that nodes pull: nodes take each that is written here, and the same file gives the same bytes."""

from __future__ import annotations

import copy
import json
import runpy
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes_support import environment
from project import ENVIRONMENTS, ROOT

from ultracluster.model import resolve
from ultracluster.model.state_documents import document_text, state_documents, state_key, users_document

ON_NODES: dict[str, Any] = runpy.run_path(str(ROOT / "lifecycle_scripts/files/people_document.py"))
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g alice@example.com"
ALICE = {"uid": 2001, "keys": [KEY], "groups": [{"vision": 3000}, "bob"]}
BOB = {"uid": 2002, "gid": 3001, "groups": [{"data": 3001}]}


@pytest.mark.parametrize("base", ENVIRONMENTS)
@pytest.mark.parametrize("users", [{}, {"alice": ALICE | {"groups": []}}, {"bob": BOB, "alice": ALICE}])
def test_nodes_take_what_is_uploaded(base: str, users: dict[str, Any]) -> None:
    cluster = resolve(environment({"users": users}, base=base))
    documents = state_documents(cluster)
    assert ("users.json" in documents) == cluster.traits.slurm
    for name, text in documents.items():
        head = json.loads(text)
        told = {"schema": 1, "document": name.removesuffix(".json"), "cluster": cluster.cluster_name}
        assert {key: head[key] for key in told} == told
    if documents:
        taken = ON_NODES["checked"](json.loads(documents["users.json"]))
        assert taken["users"].keys() == users.keys()
        assert taken["removals"] == "few"


STRANGE: list[Any] = [None, True, -1, 2.5, 2**40, "", "x" * 5000, "a\nb", "../..", [], [[]], [None], {}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*path, key))


def test_nodes_refuse_what_is_broken_anywhere_in_words() -> None:
    """Each value in turn is something else, or missing: the whole document is taken, or refused in a line."""
    good = users_document(resolve(environment({"users": {"bob": BOB, "alice": ALICE}}, base="dev")))
    refused: list[str] = []
    for path in list(places(good)):
        for strange in (*STRANGE, ...):
            document = copy.deepcopy(good)
            *parents, last = path
            target: Any = document
            for key in parents:
                target = target[key]
            if strange is ...:
                del target[last]
            else:
                target[last] = strange
            try:
                ON_NODES["checked"](document)
            except ON_NODES["MalformedError"] as error:
                refused.append(str(error))
    assert len(refused) > 200 and max(map(len, refused)) < 200


def test_nodes_that_run_no_scripts_pull_nothing() -> None:
    assert state_documents(resolve(environment({"orchestrator.lifecycle": "none"}, base="dev"))) == {}


def test_the_order_of_the_file_is_not_in_the_document() -> None:
    one, other = (
        users_document(resolve(environment({"users": users}, base="dev")))
        for users in ({"alice": ALICE, "bob": BOB}, {"bob": BOB, "alice": ALICE})
    )
    assert document_text(one) == document_text(other)


def test_the_place_stays() -> None:
    cluster = resolve(environment({}, base="dev"))
    assert state_key(cluster, "users") == "dev/state/users.json"
