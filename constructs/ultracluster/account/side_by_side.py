"""Several calls at the same time, which an interrupt leaves at once.

A pool of `concurrent.futures` waits for its threads when it ends, and the interpreter does once more: for a
request that nobody waits for any more, up to a minute and its repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def as_they_come(
    calls: Sequence[Callable[[], Answer]], at_once: int
) -> Iterator[tuple[int, Callable[[], Answer]]]:
    """Make all calls, and yield each with its number once it has ended.

    Args:
        at_once: how many at the same time, at the most.

    Yields:
        A call's place in `calls`, and what gives its answer, or raises what it raised.
    """
    open_calls: SimpleQueue[int] = SimpleQueue()
    ended: SimpleQueue[tuple[int, Callable[[], Answer]]] = SimpleQueue()
    for number in range(len(calls)):
        open_calls.put(number)

    def work() -> None:
        while True:
            try:
                number = open_calls.get_nowait()
            except Empty:
                return
            ended.put((number, _made(calls[number])))

    for _ in range(min(at_once, len(calls))):
        Thread(target=work, daemon=True).start()
    try:
        for _ in calls:
            yield ended.get()
    finally:  # what has not begun is begun no more
        while not open_calls.empty():
            try:
                open_calls.get_nowait()
            except Empty:
                break


def _made(call: Callable[[], Answer]) -> Callable[[], Answer]:
    """Return what gives the answer of a call, or raises its error, in another thread."""
    try:
        answer = call()
    except Exception as error:
        raised = error

        def fail() -> Answer:
            raise raised

        return fail
    return lambda: answer
