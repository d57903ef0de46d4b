"""Names and ids that no person can have: the same here and on nodes."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from project import ROOT

from ultracluster.catalog.node_accounts import taken_id, taken_names
from ultracluster.config.session_user import IMAGE_USERS, SESSION_USER

ON_NODES: dict[str, Any] = runpy.run_path(str(ROOT / "lifecycle_scripts/files/people_document.py"))


def test_nodes_refuse_the_same_names() -> None:
    assert ON_NODES["OTHERS"] == set(taken_names())
    assert {*IMAGE_USERS, SESSION_USER, "root"} <= set(taken_names())


@pytest.mark.parametrize("number", [0, 1, 999, ON_NODES["SESSION_ID"], 65534, 65535, 1000, 64030, 61184])
def test_ids_of_others(number: int) -> None:
    assert taken_id(number)


@pytest.mark.parametrize("number", [1001, 2000, 4998, 5000, 59999, 65536, 200_000, 2_147_483_647])
def test_free_ids(number: int) -> None:
    assert taken_id(number) is None
    assert not ON_NODES["why_reserved"]("alice", number)


def test_what_nodes_refuse_is_refused_here() -> None:
    """Not the other way round: a node takes what an image of somebody's own leaves free."""
    refused = [number for number in range(70_000) if ON_NODES["why_reserved"]("alice", number)]
    assert all(taken_id(number) for number in refused)
