"""Twins that test files share: machines boot once in a run, and each file has a Slurm of its own on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from slurm_twin.root import NoTwinError
from slurm_twin.twin import Twin

Machines = Callable[..., Twin]


@pytest.fixture(scope="session")
def machines() -> Iterator[Machines]:
    """Gives four nodes of a Slurm release, for `fresh`."""
    with contextlib.ExitStack() as stack:

        @cache
        def get(version: str = "26.05", *, configless: bool = False) -> Twin:
            twin = Twin(4, version=version, configless=configless, accounting=True)
            try:
                return stack.enter_context(twin)
            except NoTwinError as error:
                pytest.skip(str(error))

        yield get


@pytest.fixture(scope="module")
def small(machines: Machines) -> Twin:
    """Four nodes."""
    return machines().fresh()


def running(twin: Twin) -> Iterator[Twin]:
    """For a fixture: the twin, until it is not needed; the test is skipped where there can be none."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(twin)
        except NoTwinError as error:
            pytest.skip(str(error))
        yield twin


def considered(twin: Twin, job: int) -> None:
    """Until the scheduler has looked for nodes for a job: in a later second than that of its submission."""
    twin.wait(
        lambda: (found := twin.job(job))["last_sched_evaluation"]["number"] > found["submit_time"]["number"],
        "the scheduler",
    )
