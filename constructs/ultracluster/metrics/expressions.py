"""PromQL as text: which metrics an expression reads, and the same expression for one cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
  | (?P<comment>\#[^\n]*)
  | (?P<labels>\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\))
  | (?P<matchers>\{(?:[^{}"'`]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)*\})
  | (?P<range>\[[^\]]*\]|\boffset\s+-?[\w<>]+)
  | (?P<number>\b(?:0x[0-9a-fA-F]+|\d[\w.]*(?:e[+-]?\d+)?))
  | (?P<call>[a-zA-Z_:][\w:]*)(?=\s*\()
  | (?P<name>[a-zA-Z_:][\w:]*)
    """,
    re.VERBOSE,
)
_WORDS = frozenset(
    [
        "and",
        "or",
        "unless",
        "bool",
        "by",
        "without",
        "on",
        "ignoring",
        "group_left",
        "group_right",
        "offset",
        "inf",
        "nan",
        "start",
        "end",
        "atan2",
        "sum",
        "min",
        "max",
        "avg",
        "group",
        "stddev",
        "stdvar",
        "count",
        "count_values",
        "bottomk",
        "topk",
        "quantile",
        "limitk",
        "limit_ratio",
    ]
)
"""Words of the language, in lower case: names of metrics elsewhere, but never here."""


def names(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    return {found.group() for found in _metrics(expression)}


def scoped(expression: str, matcher: str) -> str:
    """The expression with a matcher in each of its selectors, as `cluster="prod"`."""
    text: list[str] = []
    done = 0
    for found in _metrics(expression):
        text.append(expression[done : found.end()])
        rest = expression[found.end() :]
        if not rest.startswith("{"):
            text.append(f"{{{matcher}}}")
            done = found.end()
            continue
        others = not re.match(r"\{\s*\}", rest)
        text.append(f"{{{matcher}, " if others else f"{{{matcher}")
        done = found.end() + 1
    return "".join([*text, expression[done:]])


def _metrics(expression: str) -> Iterator[re.Match[str]]:
    for found in _TOKEN.finditer(expression):
        if found.lastgroup == "name" and found.group().lower() not in _WORDS:
            yield found
