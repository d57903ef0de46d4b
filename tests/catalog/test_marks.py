"""Marks of doubt: few, and each names who could settle it (docs/facts.md)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from project import ROOT

pytestmark = pytest.mark.slow

MOST = 14
"""Of different doubts: pages that are written from a table repeat its marks."""
PLACES = ("constructs", "docs", "environments", "examples", "lifecycle_scripts", "stacks", "tools")
MARK = re.compile(r"\(unverified|unverified\)")
NAMED = re.compile(r"\(unverified: [^()]+ (?:shows?|reads|has|have)\b[^()]*\)")
"""A mark in full: what or who shows, reads or has the fact."""
FORM = "(unverified: ...)"
"""How docs/facts.md writes the mark that it explains."""


def marked() -> list[str]:
    """`file:line: text` of each marked line."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PLACES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    found: list[str] = []
    for name in listed:
        file = ROOT / Path(name)
        if file.is_symlink() or not file.is_file():
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if MARK.search(line.replace(FORM, "")):
                found.append(f"{name}:{number}: {line}")
    return found


def test_marks_of_doubt_are_few() -> None:
    doubts = {MARK.sub("", found[0]) if (found := NAMED.search(line)) else line for line in marked()}
    assert 0 < len(doubts) <= MOST, "\n".join(sorted(doubt[:160] for doubt in doubts))


def test_each_mark_names_who_could_settle_it() -> None:
    bare = [line[:200] for line in marked() if MARK.search(NAMED.sub("", line))]
    assert bare == []
