"""To wait for what another thread or process does, and to have a process that a test may kill."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 300.0
"""Seconds: a busy machine is slow, and only a test that fails waits so long."""


def until(look: Callable[[], T]) -> T:
    """The first answer that is true."""
    end = time.monotonic() + PATIENCE
    pause = threading.Event()  # some tests take time.sleep away
    while not (answer := look()):
        assert time.monotonic() < end, "what the test waits for does not happen"
        pause.wait(0.01)
    return answer


def forked(work: Callable[[], object]) -> int:
    """The id of a child of this process that does the work; it has all that is imported here."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child
