"""Collectives that are measured, and what their figures mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.acceptance.collectives import COLLECTIVES, ceiling_of, collective_of


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_program_belongs_to_one_collective(name: str) -> None:
    assert collective_of(f"{COLLECTIVES[name].program}_mpi") == name


def test_other_programs_belong_to_none() -> None:
    assert collective_of("sendrecv_perf") is None


@given(st.integers(2, 4000), st.integers(1, 16), st.sampled_from(["all_gather", "all_to_all"]))
def test_more_nodes_put_more_of_the_bytes_on_the_fabric(nodes: int, each: int, name: str) -> None:
    """The ceiling falls with the nodes towards the line rate, or each rank's share of it."""
    now, later = (ceiling_of(name, 400, count, count * each) for count in (nodes, nodes + 1))
    assert now is not None and later is not None
    share = 400 / each if COLLECTIVES[name].by_rank else 400
    assert now >= later >= share


def test_one_node_has_no_ceiling() -> None:
    assert ceiling_of("all_to_all", 400, 1, 8) is None
