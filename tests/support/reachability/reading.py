"""Reading of resources in which an error is a finding with the resource's name, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(unjudged: list[str], what: str) -> Iterator[None]:
    """Around the reading of a resource or place: what is not understood of it is noted."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration, RuntimeError) as error:
        unjudged.append(f"{what} cannot be judged: {type(error).__name__} {error}")
