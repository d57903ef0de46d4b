"""The lines that prove which network NCCL uses, from the file that the nodes read, too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ultracluster.scripts_folder import scripts_folder

Expectation = Literal["process", "host", "never", "maybe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One kind of line; its fields are explained in `nccl_patterns.json`."""

    id: str
    expect: Expectation
    verdict: Literal["fail", "warn", "info"]
    contains: str
    regex: re.Pattern[str]
    message: str
    whole_line: bool

    def find(self, text: str, *, torn: bool = False) -> str | None:
        """What the line says ("" if it says nothing but itself), or None if it is none of this kind."""
        if self.contains not in text or (torn and self.whole_line):
            return None
        match = self.regex.search(text)
        if match is None:
            return None
        return match.groupdict().get("value") or ""


@cache
def patterns() -> tuple[Pattern, ...]:
    """All of them, in the order of the file."""
    return tuple(_pattern(row) for row in _document()["patterns"])


@cache
def pattern(name: str) -> Pattern:
    """The pattern with this id."""
    return next(one for one in patterns() if one.id == name)


@cache
def _document() -> dict[str, Any]:
    return json.loads((scripts_folder() / "verify" / "nccl_patterns.json").read_text(encoding="utf-8"))


def _pattern(row: Mapping[str, Any]) -> Pattern:
    fields: dict[str, Any] = {"whole_line": False, **row, "regex": re.compile(row["regex"])}
    return Pattern(**fields)
