"""`ultracluster software show --check --online`: what the sources of a release have now."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.account.side_by_side import as_they_come
from ultracluster.cli.progress import LateBar
from ultracluster.supply.artifacts import default_cache
from ultracluster.supply.downloads import Limits
from ultracluster.supply.online import questions

if TYPE_CHECKING:
    from ultracluster.software import Release
    from ultracluster.supply.online import Answer, State

SECONDS = 600
"""For all sources of a release together."""
_AT_ONCE = 8
_WORDS: dict[State, str] = {
    "proven": "proven",
    "there": "there",
    "differs": "DIFFERS",
    "gone": "GONE",
    "unanswered": "no answer",
    "not-asked": "not asked",
}


def limits(seconds: float, attempts: int = 2) -> Limits:
    """Attempts with 15 s each for a request, and `seconds` for all requests together."""
    return Limits(until=time.monotonic() + seconds, timeout=15, attempts=attempts)


def ask_sources(release: Release, cache: Path | None) -> list[Answer]:
    """Return what every source of a release says, in the order of the release."""
    asked = list(questions(release, cache or default_cache(), limits(SECONDS)))
    answers: dict[int, list[Answer]] = {}
    with LateBar("asking the sources") as bar:
        bar(0, len(asked))
        for number, answer in as_they_come([question.ask for question in asked], _AT_ONCE):
            answers[number] = answer()
            bar(len(answers), len(asked))
    return [answer for number in sorted(answers) for answer in answers[number]]


def answer_lines(answers: Sequence[Answer]) -> Iterator[str]:
    """A line for each answer with what it is about, and one with the sum."""
    alike: dict[tuple[State, str], list[str]] = {}
    for answer in answers:
        alike.setdefault((answer.state, answer.detail), []).append(f"{answer.component}: {answer.what}")
    for (state, detail), names in alike.items():
        if len(names) == 1:
            yield f"{_WORDS[state]:10} {names[0]}: {detail}"
        else:
            yield f"{_WORDS[state]:10} {detail}"
            yield from (f"           {name}" for name in dict.fromkeys(names))
    if answers:
        counts = Counter(answer.state for answer in answers)
        found = [f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state]]
        yield f"sources: {', '.join(found)}"


def exit_code(answers: Sequence[Answer]) -> int:
    """1 where a source has something else or nothing, 3 where one did not answer."""
    if any(answer.bad for answer in answers):
        return 1
    return 3 if any(answer.state == "unanswered" for answer in answers) else 0
