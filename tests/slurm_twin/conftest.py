"""Twins that the tests of one file share; what a test changes, it changes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from slurm_twin.root import NoTwinError
from slurm_twin.twin import Twin


@pytest.fixture(scope="module")
def small() -> Iterator[Twin]:
    """Four nodes."""
    yield from running(Twin(nodes=4))


@pytest.fixture(scope="module")
def wide() -> Iterator[Twin]:
    """Sixteen nodes, as many as have namespaces of their own."""
    yield from running(Twin(nodes=16))


def running(twin: Twin) -> Iterator[Twin]:
    """For a fixture: the twin, until it is not needed; the test is skipped where there can be none."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(twin)
        except NoTwinError as error:
            pytest.skip(str(error))
        yield twin
