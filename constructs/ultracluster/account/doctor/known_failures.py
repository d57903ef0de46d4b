"""Texts that failed deployments leave behind, and what mostly causes them (`known_failures.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Stage = Literal["deploy", "node", "storage", "slurm", "kubernetes", "job", "shell"]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One row of the table."""

    id: str
    weight: int
    """3 names the cause, 2 points at it, 1 is said of anything."""
    when: Stage
    """What people were doing when they met it."""
    seen: str
    """Such a text, as they met it."""
    pattern: str
    """Regular expression, upper and lower case alike."""
    cause: str
    do: str
    page: str
    """Of docs/, where more stands."""
    sources: tuple[str, ...]
    """Public threads (`owner/repository#number`) or pages where this was found out."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A known failure that fits."""

    failure: KnownFailure
    evidence: tuple[int, ...]
    """Positions of the texts that fit, in the order given."""


@cache
def known_failures() -> tuple[KnownFailure, ...]:
    """Every row of the table."""
    text = resources.files("ultracluster.account.doctor").joinpath("known_failures.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["failures"]
    return tuple(
        KnownFailure(
            id=row["id"],
            weight=row["weight"],
            when=row["when"],
            seen=row["seen"],
            pattern=row["pattern"],
            cause=row["cause"],
            do=row["do"],
            page=row["page"],
            sources=tuple(row["sources"]),
        )
        for row in rows
    )


def diagnose(texts: Sequence[str]) -> list[Diagnosis]:
    """The failures that fit, the most telling first: what names a cause before what is said of anything,
    then what more texts say, then what was said first in the order given."""
    found: list[Diagnosis] = []
    for failure in known_failures():
        pattern = re.compile(failure.pattern, re.IGNORECASE)
        evidence = tuple(number for number, text in enumerate(texts) if pattern.search(text))
        if evidence:
            found.append(Diagnosis(failure, evidence))
    return sorted(found, key=lambda one: (-one.failure.weight, -len(one.evidence), one.evidence[0]))
