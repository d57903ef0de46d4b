"""Comparing versions as AWS and NVIDIA write them: `2.6.0amzn1.0`, `2.30.7-1`, `595.91.07`, `13.3.1`.

The order is that of Debian packages with one difference: zeros at the end of a row of numbers do not
count (`13.3` is `13.3.0`), because upstreams write both for one release.
"""

from __future__ import annotations

import re
from functools import cache, total_ordering

_TOKEN = re.compile(r"\d+|[a-z]+|[~+-]")
_EPOCH = re.compile(r"^(\d+):")
_BEFORE_RELEASE = {"~", "rc", "alpha", "beta", "dev", "pre"}
_END = (0, 0, "")


@total_ordering
class Version:
    """One version with its place in the order.

    `1.22.0 < 1.22.0amzn4.0 < 1.22.0.1`, `2.30.7 < 2.30.7-1`, `1.0rc1 < 1.0`, `580.65 < 580.126`.

    Raises:
        ValueError: the text holds no digit.
    """

    __slots__ = ("_key", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._key = _key(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"

    def within(self, series: Version) -> bool:
        """Whether this is `series` or a more exact version of it: `25.11.4` is within `25.11`."""
        series_key = series._key[1:-1]  # the epoch before and the end after
        return self._key[0] == series._key[0] and self._key[1 : 1 + len(series_key)] == series_key


@cache
def _key(text: str) -> tuple[tuple[int, int, str], ...]:
    rest = text.strip().lower().removeprefix("v")
    epoch = _EPOCH.match(rest)
    tokens = _TOKEN.findall(rest[epoch.end() :] if epoch else rest)
    if not any(token.isdigit() for token in tokens):
        raise ValueError(f"{text!r} is no version: it holds no digit")
    parts: list[tuple[int, int, str]] = []
    for token in tokens:
        if token.isdigit():
            parts.append((2, int(token), ""))
            continue
        _drop_zeros(parts)
        rank = -1 if token in _BEFORE_RELEASE else 1
        parts.append((rank, 0, "" if token == "~" else token))  # noqa: S105 - a tilde sorts first
    _drop_zeros(parts)
    return ((2, int(epoch[1]) if epoch else 0, ""), *parts, _END)


def _drop_zeros(parts: list[tuple[int, int, str]]) -> None:
    """`2.6.0` -> `2.6`, but a lone `0` stays."""
    while len(parts) > 1 and parts[-1] == (2, 0, "") and parts[-2][0] == 2:
        parts.pop()
