"""Nodes by every name that they have, and names in chunks."""

from __future__ import annotations

import pytest
from hyperpod_service import HyperPod, account
from hypothesis import given
from hypothesis import strategies as st
from nodes_support import node_id

from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes.node import chunks, find


@given(st.lists(st.text(min_size=1), unique=True, max_size=300), st.integers(1, 120))
def test_chunks_neither_lose_nor_repeat(names: list[str], limit: int) -> None:
    parts = list(chunks(names, limit))
    assert [one for part in parts for one in part] == names
    assert all(1 <= len(part) <= limit for part in parts)


@pytest.mark.parametrize(
    "asked",
    [
        node_id(16),
        "gpu-16",
        "ip-10-1-0-16",
        "ip-10-1-0-16.us-west-2.compute.internal",
        "10.1.0.16",
        f"gpu-{node_id(16)}",
    ],
)
def test_a_node_answers_to_every_name_it_has(asked: str) -> None:
    aws_account = account()
    HyperPod(aws_account)
    nodes = hyperpod_nodes.list_nodes(aws_account, hyperpod_nodes.read_cluster(aws_account, "dev"))
    found, missing = find(nodes, [asked, asked])
    assert [one.id for one in found] == [node_id(16)] and not missing
    assert find(nodes, ["", "gpu"]) == ([], ["", "gpu"])
