"""Patterns of lines that NCCL writes."""

from __future__ import annotations

import re

from ultracluster.acceptance.patterns import patterns


def test_patterns_find_what_they_look_for_first() -> None:
    """A line that lacks the literal part is never shown to the regular expression."""
    for pattern in patterns():
        assert pattern.contains
        plain = re.sub(r"\\(.)", r"\1", pattern.regex.pattern)
        assert all(
            part and (pattern.contains in part or "Socket" in part) for part in plain.split("|")[:1]
        ), pattern.id
    assert len({pattern.id for pattern in patterns()}) == len(patterns())
