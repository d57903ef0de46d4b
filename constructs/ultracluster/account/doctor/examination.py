"""What asking an environment's sources brings to light.

A source that cannot be read takes nothing from the others: it becomes a row that says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread
from typing import Literal

from ultracluster.account.aws import AWS_ERRORS, AccountError, explain
from ultracluster.account.doctor.known_failures import Diagnosis, diagnose
from ultracluster.account.doctor.node_faults import benign_faults, node_fault_diagnoses
from ultracluster.catalog.node_faults import Fault

Level = Literal["error", "warning", "info"]
BUDGET = 30.0
"""Seconds for all sources: somebody waits for the answer in an incident."""
STACK = "stack "
"""How the name of a source begins that is a stack."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a source says."""

    source: str
    where: str
    """Stack and resource, group, node or log stream."""
    text: str
    level: Level = "error"
    when: datetime | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Whether a source could be read."""

    name: str
    state: Literal["read", "nothing there", "not readable"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A line of a log that somebody gave."""

    where: str
    """File and line."""
    text: str
    times: int = 1


@dataclass(slots=True)
class Examination:
    """Everything found."""

    sources: list[Source] = field(default_factory=list[Source])
    facts: list[Fact] = field(default_factory=list[Fact])
    logs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Tails by log stream."""
    quotes: list[Quote] = field(default_factory=list[Quote])
    """Lines that were given, each once."""
    generations: tuple[str, ...] = ()
    """Generations of the environment's accelerators; empty where that is not known."""

    @property
    def texts(self) -> list[str]:
        """Return what is matched: facts, then the logs."""
        return [
            *(f"{fact.where}: {fact.text}" for fact in self.facts if fact.level != "info"),
            *("\n".join(lines) for lines in self.logs.values()),
            *(quote.text for quote in self.quotes),
        ]

    @property
    def labels(self) -> list[str]:
        """Return where each of `texts` is from."""
        return [
            *(f"{fact.source}: {fact.where}" for fact in self.facts if fact.level != "info"),
            *(f"log {name}" for name in self.logs),
            *(quote.where + (f" ({quote.times} times)" if quote.times > 1 else "") for quote in self.quotes),
        ]

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """Faults of nodes and known failures, the most telling first."""
        found = [*node_fault_diagnoses(self.texts, self.generations), *diagnose(self.texts)]
        return sorted(found, key=lambda one: -one.failure.weight)

    @property
    def benign(self) -> list[tuple[Fault, int]]:
        """Faults that ask nothing of a node, and how many texts have them."""
        return benign_faults(self.texts, self.generations)

    @property
    def deployed(self) -> bool | None:
        """Return whether any of the environment's stacks is there; None where that could not be read."""
        states = [source.state for source in self.sources if source.name.startswith(STACK)]
        if "read" in states:
            return True
        return None if "not readable" in states or not states else False

    @property
    def healthy(self) -> bool:
        """True where every source was read and none has anything to complain of; of lines that were given,
        whether no cause fits."""
        if self.quotes and self.diagnoses:
            return False
        return not any(source.state == "not readable" for source in self.sources) and all(
            fact.level == "info" for fact in self.facts
        )


class Asked:
    """A question that is being put to one source."""

    def __init__(self, name: str, logs: dict[str, list[str]]) -> None:
        self.name, self.logs = name, logs
        self.source: Source | None = None
        """How it ended; None where there was nothing to ask."""
        self.facts: list[Fact] = []
        self.ended = Event()


class Inquiry:
    """Questions put side by side: a source that is slow, or throttled, delays no other.

    What a question finds out for others it leaves in variables of its own; `needs` is what they wait for.
    """

    def __init__(
        self,
        progress: Callable[[str], None] = lambda step: None,
        budget: float = BUDGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            progress: called with the name of the source that is waited for.
            budget: seconds for all sources together.
            clock: seconds of a clock that never goes back.
        """
        self._progress, self._budget, self._clock = progress, budget, clock
        self._end = clock() + budget
        self._asked: list[Asked] = []

    def ask(
        self,
        name: str,
        question: Callable[[], list[Fact] | Source | None],
        *,
        needs: Sequence[Asked] = (),
        when: Callable[[], bool] = lambda: True,
        logs: dict[str, list[str]] | None = None,
    ) -> Asked:
        """Put a question; its failure is a row.

        Args:
            question: gives what the source says, None if there is nothing, or its row.
            needs: questions that must have ended before.
            when: whether there is anything to ask, once those have ended; else it has no row.
            logs: what it adds to the logs by stream.
        """
        asked = Asked(name, {} if logs is None else logs)
        self._asked.append(asked)

        def put() -> None:
            for need in needs:
                need.ended.wait()
            try:
                if when():
                    answer = question()
                    if isinstance(answer, Source):
                        asked.source = answer
                    else:
                        asked.facts = answer or []
                        asked.source = Source(name, "nothing there" if answer is None else "read")
            except AccountError as error:
                asked.source = Source(name, "not readable", str(error))
            except AWS_ERRORS as error:
                asked.source = Source(name, "not readable", explain(error))
            except Exception as error:
                asked.source = Source(name, "not readable", f"{type(error).__name__}: {error}")
            finally:
                asked.ended.set()

        # no pool: the interpreter would wait at its end for a call that nobody waits for any more
        Thread(target=put, daemon=True).start()
        return asked

    def collect(self) -> Examination:
        """Everything that was found before the time was up, in the order of the questions."""
        examination = Examination()
        for asked in self._asked:
            if not asked.ended.is_set():
                self._progress(asked.name)
            if not asked.ended.wait(max(0.0, self._end - self._clock())):
                why = f"no answer within {self._budget:g} seconds: ask again, AWS may be throttling"
                examination.sources.append(Source(asked.name, "not readable", why))
            elif asked.source:
                examination.sources.append(asked.source)
                examination.facts += asked.facts
                examination.logs |= asked.logs
        return examination


def said(head: str, tail: str) -> str:
    """`status: reason`, or the one of them that is there."""
    return ": ".join(part for part in (head, tail) if part)
