"""A training job, as people ask for it."""

from __future__ import annotations

import pytest

from ultracluster.jobs.training_job import Resilience, reserved_nodes


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        (None, 4),
        (Resilience(kind="restart"), 4),
        (Resilience(kind="restart", spares=2), 6),
        (Resilience(kind="elastic", most_nodes=16), 16),
        (Resilience(kind="elastic", most_nodes=16, spares=1), 17),
    ],
)
def test_nodes_that_wait_for_a_job_are_reserved_with_it(asked: Resilience | None, nodes: int) -> None:
    assert reserved_nodes(4, asked) == nodes
