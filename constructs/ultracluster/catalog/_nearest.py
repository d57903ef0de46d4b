"""Suggestions for names that the catalogue does not know."""

from collections.abc import Iterable
from difflib import SequenceMatcher

CUTOFF = 0.55  # similarity from 0 to 1 under which a suggestion is of no help


def nearest(name: str, candidates: Iterable[str], family: str, count: int) -> list[str]:
    """The `count` candidates most like `name`, the most similar first.

    Candidates whose part before the first "." equals `family` come before all others; of two that
    look as similar, the one that begins like `name`. Empty when nothing resembles the name.
    """
    scored: list[tuple[bool, float, str]] = []
    for candidate in set(candidates) if name else ():
        score = SequenceMatcher(None, name, candidate, autojunk=False).ratio()
        relative = candidate.partition(".")[0] == family
        if relative or score >= CUTOFF or name in candidate:
            scored.append((not relative, -score - _shared_start(name, candidate) / 100, candidate))
    return [candidate for *_, candidate in sorted(scored)[:count]]


def _shared_start(a: str, b: str) -> int:
    """How many characters both begin with."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)
