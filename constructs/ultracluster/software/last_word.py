"""The last line of a node's scripts: how their run ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_LAST = re.compile(
    r"(?:\d{4}-\d\d-\d\dT[0-9:.]+Z +[A-Z]+ +)?(?P<state>READY|DEGRADED|FAILED)(?: (?P<rest>.*))?", re.DOTALL
)
_FAILURE = re.compile(r"[A-Za-z0-9_.-]+: .+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """The end of a run of the scripts on a node."""

    state: Literal["ready", "degraded", "failed"]
    reason: str = ""
    degraded: tuple[str, ...] = ()
    entry: str = ""


def last_word(line: str) -> Word | None:
    """The end of a run, if a line says that: `READY ...`, `DEGRADED a, b: ...`, `FAILED step: why`."""
    match = _LAST.fullmatch(line.strip())
    if not match:
        return None
    rest = (match["rest"] or "").strip()
    if match["state"] == "READY":
        return Word("ready", rest)
    if match["state"] == "FAILED":  # a program's own `FAILED 3 of 4 tests` is none
        return Word("failed", rest) if _FAILURE.fullmatch(rest) else None
    names, colon, reason = rest.partition(":")
    if not colon:
        return None
    return Word("degraded", reason.strip(), tuple(re.split(r"[,\s]+", names.strip())))
