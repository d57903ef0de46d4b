"""Wait for an event in another thread or process; start a process that a test may kill."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 300.0
"""Seconds. Only a test that fails waits until the end of them."""


def until(look: Callable[[], T]) -> T:
    """Ask until the answer is true, and return it."""
    end = time.monotonic() + PATIENCE
    pause = threading.Event()  # some tests take time.sleep away
    while not (answer := look()):
        assert time.monotonic() < end, "what the test waits for does not happen"
        pause.wait(0.01)
    return answer


def forked(work: Callable[[], object]) -> int:
    """Do the work in a child of this process, with all modules that are loaded here; return its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child
