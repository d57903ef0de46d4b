"""Texts that failures leave behind, and what causes them (`failures/`, a file for each layer)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Stage = Literal["deploy", "node", "storage", "slurm", "kubernetes", "job", "shell"]
_FOLDER = resources.files("ultracluster.account.doctor")
_LONGEST = 4000
"""Characters of a line that a pattern is tried on."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One row of the table: a text and one of its causes."""

    id: str
    layer: str
    """The part of a cluster, in words."""
    weight: int
    """3 names the cause, 2 points at it, 1 is said of anything."""
    when: Stage
    """What people were doing when they met it."""
    seen: str
    """Such a text, as they met it."""
    pattern: str
    """Regular expression of a line, upper and lower case alike."""
    unless: str
    """Regular expression of lines that look alike and mean something else; empty for none."""
    words: tuple[str, ...]
    """In lower case: one of them is in every line that fits."""
    cause: str
    differs: str
    """The difference from what looks alike."""
    do: str
    run: str
    """The next command."""
    page: str
    """Of docs/, where more stands."""
    sources: tuple[str, ...]
    """Public threads (`owner/repository#number`) or pages where this was found out."""
    certain: bool = True
    """True where the source states the cause; else it is possible, beside another cause of the same text."""
    text_of: str = ""
    """The row whose text this is another cause of; empty for a text of its own."""

    def fits(self, line: str, lowered: str) -> bool:
        """True for a line that is such a text.

        Args:
            lowered: the line in lower case.
        """
        return (
            any(word in lowered for word in self.words)
            and bool(_compiled(self.pattern).search(line))
            and not (self.unless and _compiled(self.unless).search(line))
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A known failure that fits."""

    failure: KnownFailure
    evidence: tuple[int, ...]
    """Positions of the texts that fit, in the order given."""


@cache
def known_failures() -> tuple[KnownFailure, ...]:
    """Every row, layer after layer; a second cause of a text behind the first."""
    return tuple(row for document in _documents() for row in _rows(document))


def diagnose(texts: Sequence[str]) -> list[Diagnosis]:
    """The failures that fit, the most telling first: what names a cause before what is said of anything,
    then what more texts say, then what was said first; what is stated stands before what is possible."""
    lines = [[(line, line.lower()) for line in readable(text)] for text in texts]
    diagnoses: list[Diagnosis] = []
    evidence: dict[str, tuple[int, ...]] = {}
    for failure in known_failures():
        if failure.text_of:
            seen = evidence[failure.text_of]
        else:
            seen = tuple(number for number, of in enumerate(lines) if any(failure.fits(*line) for line in of))
        evidence[failure.id] = seen
        if seen:
            diagnoses.append(Diagnosis(failure, seen))
    return sorted(
        diagnoses,
        key=lambda one: (-one.failure.weight, -len(one.evidence), one.evidence[0], not one.failure.certain),
    )


def readable(text: str) -> Iterator[str]:
    """The lines of a text, with error numbers in English, and a long line in pieces that overlap."""
    step = _LONGEST - 400
    for line in text.splitlines() or [text]:
        for start in range(0, max(len(line) - 400, 1), step):
            piece = line[start : start + _LONGEST]
            yield piece if piece.isascii() else _in_english(piece)


def _in_english(text: str) -> str:
    for foreign, english in _errno_words():
        if foreign in text:
            text = text.replace(foreign, english)
    return text


@cache
def _errno_words() -> tuple[tuple[str, str], ...]:
    """Pairs of words for an error number, the longest first."""
    languages = json.loads(_FOLDER.joinpath("errno_words.json").read_text("utf-8"))["languages"]
    pairs = {foreign: english for words in languages.values() for foreign, english in words.items()}
    return tuple(sorted(pairs.items(), key=lambda pair: -len(pair[0])))


def _documents() -> Iterator[dict[str, Any]]:
    files = [file for file in _FOLDER.joinpath("failures").iterdir() if file.name.endswith(".json")]
    for file in sorted(files, key=lambda file: file.name):
        yield json.loads(file.read_text("utf-8"))


def _rows(document: dict[str, Any]) -> Iterator[KnownFailure]:
    texts = {row["id"]: row for row in document["failures"] if "text_of" not in row}
    for text in texts.values():
        others = [row for row in document["failures"] if row.get("text_of") == text["id"]]
        rows: list[dict[str, Any]] = [text, *({**text, "certain": True, **other} for other in others)]
        for row in rows:
            yield KnownFailure(
                id=row["id"],
                layer=document["layer"],
                weight=row["weight"],
                when=row["when"],
                seen=row["seen"],
                pattern=row["pattern"],
                unless=row.get("unless", ""),
                words=tuple(row["words"]),
                cause=row["cause"],
                differs=row["differs"],
                do=row["do"],
                run=row["run"],
                page=row["page"],
                sources=tuple(row["sources"]),
                certain=row.get("certain", True),
                text_of=row.get("text_of", ""),
            )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
