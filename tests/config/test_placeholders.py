"""Values of example environments that a user must replace are marked, each at its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import ROOT

MARK = "# replace"
_PLACEHOLDER = re.compile(
    r"(?<!\d)111122223333(?!\d)|\b(cr|vpc|subnet|sg|ami|fs|fsvol|nat|lt|tgw)-0[0-9a-f]{7,17}\b"
)
FILES = sorted((ROOT / "environments").rglob("*.yaml"))


def unmarked(text: str) -> list[str]:
    """Lines with a value of nobody's account, and no mark."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line for line in lines if _PLACEHOLDER.search(line.split(" #")[0]) and MARK not in line]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_placeholders_are_marked(file: Path) -> None:
    assert unmarked(file.read_text(encoding="utf-8")) == []


def test_a_missing_mark_is_seen() -> None:
    assert unmarked("id: cr-0123456789abcdef0\n") == ["id: cr-0123456789abcdef0"]
    assert unmarked("id: cr-0123456789abcdef0 # replace\n# vpc-0123456789abcdef0\nsize: 12\n") == []
