"""State of what is judged: a remedy for a new environment may be refused for a running one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_DEPLOYED: Final = ContextVar("deployed", default=False)


@contextmanager
def as_deployed() -> Generator[None]:
    """Within it the environment counts as deployed as its file says."""
    token = _DEPLOYED.set(True)
    try:
        yield
    finally:
        _DEPLOYED.reset(token)


def is_deployed() -> bool:
    """True where the environment is known to be deployed; False is not known."""
    return _DEPLOYED.get()
