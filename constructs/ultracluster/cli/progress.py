"""What a command waits for, in one line on standard error that comes after two seconds and leaves no trace.

While a request to AWS is under way the line is there by itself. What else takes long says so:

    with working("synthesising prod") as say:
        ...
        say("reading templates")

    with LateBar("asking AWS") as bar:
        bar(3, 40)

Nothing is drawn where standard error is no terminal, and with `--quiet`. Light: rich is imported when the
line is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any

from ultracluster.account import under_way
from ultracluster.cli import terminal

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress

LATE = 2.0
"""Seconds without a sign of life after which the line is there."""
LINGER = 0.3
"""Seconds for which it stays between two waits, so that it does not flicker."""
TICK = 0.1


@dataclass(slots=True)
class Wait:
    """One thing that is waited for."""

    text: str
    done: int = 0
    of: int = 0
    """How much there is; 0 where nobody knows."""


class Line:
    """The line, and the thread that draws it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._waits: list[Wait] = []
        self._held = 0
        self._live: Live | None = None
        self._since = self._busy = time.monotonic()
        self._ended = Event()
        self._thread: Thread | None = None

    @property
    def waits_for(self) -> str:
        """What it says, or would say if it were there; empty while nothing is waited for."""
        return self.newest()[0].text

    @property
    def is_shown(self) -> bool:
        """Whether a person sees that the program waits: by the line, or by bars."""
        return self._live is not None or self._held > 0

    def begin(self) -> None:
        """A command begins."""
        under_way.forget()
        self._ended.clear()
        self._since = time.monotonic()
        if terminal.shows_progress():
            self._thread = Thread(target=self._watch, name="progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The command has ended, however it has."""
        self._ended.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._waits.clear()
            self._held = 0
            self._hide()

    def clear(self) -> None:
        """Something else appears on the terminal now: two seconds begin anew."""
        with self._lock:
            self._since = time.monotonic()
            self._hide()

    @contextmanager
    def waiting(self, wait: Wait) -> Generator[Wait]:
        with self._lock:
            self._waits.append(wait)
        try:
            yield wait
        finally:
            with self._lock:
                if wait in self._waits:
                    self._waits.remove(wait)
                if not self._waits:
                    self._hide()

    @contextmanager
    def held(self) -> Generator[None]:
        """Something of its own shows how far it is."""
        with self._lock:
            self._held += 1
            self._hide()
        try:
            yield
        finally:
            with self._lock:
                self._held = max(0, self._held - 1)
                self._since = time.monotonic()

    def _watch(self) -> None:
        while not self._ended.wait(TICK):
            self._tick()

    def _tick(self) -> None:
        with self._lock:
            now = time.monotonic()
            if self._held or terminal.quiet() or not self.waits_for:
                if now - self._busy > LINGER:
                    self._hide()
                return
            self._busy = now
            if self._live is None and now - self._since >= LATE:
                self._show()

    def _show(self) -> None:
        from ultracluster.cli.progress_drawing import live  # rich takes 30 ms, and most commands end before

        self._live = live(self.newest)
        self._live.start()

    def _hide(self) -> None:
        live, self._live = self._live, None
        if live:
            live.stop()

    def newest(self) -> tuple[Wait, float]:
        """What the line says now, and for how many seconds. The thread of rich asks, which must not wait for
        who ends it: there is no lock."""
        asked = under_way.request()
        for wait in self._waits[-1:]:
            return wait, time.monotonic() - self._since
        return Wait(f"asking AWS: {asked}" if asked else ""), time.monotonic() - self._since


LINE = Line()
"""There is one terminal."""


@contextmanager
def shown() -> Generator[None]:
    """For one command."""
    LINE.begin()
    try:
        with terminal.on_hand_over(LINE.clear):
            yield
    finally:
        LINE.end()


@contextmanager
def working(text: str) -> Generator[Callable[[str], None]]:
    """Say what is done now. Yields what changes the text."""
    with LINE.waiting(Wait(text)) as wait:

        def say(text: str) -> None:
            wait.text = text

        yield say


class LateBar:
    """A bar for what can be counted; call it with what is done and how much there is."""

    def __init__(self, what: str) -> None:
        self._wait = Wait(what)
        self._on: Any = None

    def __enter__(self) -> LateBar:
        self._on = LINE.waiting(self._wait)
        self._on.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._on.__exit__(None, None, None)

    def __call__(self, done: int, of: int) -> None:
        self._wait.done, self._wait.of = done, of


def bars(*columns: Any, before: str = "{task.description}") -> Progress:
    """Bars, one for each task, with more columns behind; gone at the end, silent where nobody looks."""
    from ultracluster.cli.progress_drawing import Bars  # as above

    return Bars(LINE.held, *columns, before=before)
