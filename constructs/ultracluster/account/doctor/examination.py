"""What asking an environment's sources brings to light.

A source that cannot be read takes nothing from the others: it becomes a row that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ultracluster.account.aws import AWS_ERRORS, AccountError, explain
from ultracluster.account.doctor.known_failures import Diagnosis, diagnose

Level = Literal["error", "warning", "info"]


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


@dataclass(slots=True)
class Examination:
    """Everything found."""

    sources: list[Source] = field(default_factory=list[Source])
    facts: list[Fact] = field(default_factory=list[Fact])
    logs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Tails by log stream."""

    @property
    def texts(self) -> list[str]:
        """What is matched: facts, then the logs."""
        return [
            *(f"{fact.where}: {fact.text}" for fact in self.facts if fact.level != "info"),
            *("\n".join(lines) for lines in self.logs.values()),
        ]

    @property
    def labels(self) -> list[str]:
        """Where each of `texts` is from."""
        return [
            *(f"{fact.source}: {fact.where}" for fact in self.facts if fact.level != "info"),
            *(f"log {name}" for name in self.logs),
        ]

    @property
    def diagnoses(self) -> list[Diagnosis]:
        return diagnose(self.texts)

    @property
    def healthy(self) -> bool:
        """Whether every source was read and none has anything to complain of."""
        return not any(source.state == "not readable" for source in self.sources) and all(
            fact.level == "info" for fact in self.facts
        )


def ask(
    found: Examination, name: str, progress: Callable[[str], None], question: Callable[[], list[Fact] | None]
) -> list[Fact]:
    """Put a question and add its answer (None: there is nothing); its failure is a row."""
    progress(name)
    try:
        facts = question()
    except AccountError as error:
        found.sources.append(Source(name, "not readable", str(error)))
        return []
    except AWS_ERRORS as error:
        found.sources.append(Source(name, "not readable", explain(error)))
        return []
    found.sources.append(Source(name, "nothing there" if facts is None else "read"))
    found.facts += facts or []
    return facts or []


def said(head: str, tail: str) -> str:
    """`status: reason`, or the one of them that is there."""
    return ": ".join(part for part in (head, tail) if part)
