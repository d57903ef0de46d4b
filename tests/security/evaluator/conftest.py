"""One evaluator for a worker, and the environments that it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from iam_proof.environments import rows_for, worlds_of
from iam_proof.evaluator import Evaluator, why_not_here
from iam_proof.verdicts import Verdict, verdicts
from iam_proof.world import World


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    if missing := why_not_here():
        pytest.skip(missing)
    with Evaluator() as made:
        yield made


@pytest.fixture(scope="session")
def worlds(templates_of: Callable[[str], dict[str, Any]]) -> Callable[[str], tuple[World, World]]:
    """Gives an environment and its neighbour, by a name of `iam_proof.environments.NAMES`."""
    return cache(lambda name: worlds_of(name, templates_of(name)))


@pytest.fixture(scope="session")
def answered(
    evaluator: Evaluator, worlds: Callable[[str], tuple[World, World]]
) -> Callable[[str], dict[str, Verdict]]:
    """Gives both tables of an environment, by the names of their rows."""

    @cache
    def get(name: str) -> dict[str, Verdict]:
        world, neighbour = worlds(name)
        return verdicts(world, evaluator, rows_for(name), others=[neighbour])

    return get
