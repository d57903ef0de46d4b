"""What is not seen becomes an escape."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.config.plain_text import clipped, foreign_in, named, one_line, unseen_in, visible

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
ARABIC = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
SEEN = {*ARABIC, *map(chr, range(0x13430, 0x13456))}
"""Marks of Arabic, Syriac and Kaithi around digits, which are seen, and the joiners of hieroglyphs."""


@given(st.text())
def test_nothing_unseen_is_left(text: str) -> None:
    shown = visible(text)

    assert not {one for one in shown if unicodedata.category(one) in HIDDEN} - {"\n", "\t"} - SEEN
    assert visible(shown) == shown
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]52;c;ZXZpbA==\x07", r"\x1b]52;c;ZXZpbA==\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("a\rb", r"a\x0db"),
        ("a\r\nb", "a\nb"),
        ("user\u202e txt.exe", r"user\u202e txt.exe"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("a\U000e0041", r"a\U000e0041"),
        ("\ud800", r"\ud800"),
        ("tab\tand line\n", "tab\tand line\n"),
        ("Zürich 東京 ✓ é", "Zürich 東京 ✓ é"),
    ],
)
def test_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_every_unseen_category_is_known() -> None:
    """Of this Python's Unicode: what category says that nothing is to be seen."""
    odd = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in HIDDEN]

    assert [one for one in odd if unseen_in(one) is None and one not in SEEN] == []


def test_names() -> None:
    assert named("\u0430") == "U+0430 CYRILLIC SMALL LETTER A"
    assert named("\x1b") == "U+001B a control character"
    assert named("\n") == "U+000A a line break"
    assert foreign_in("arn:\u0430") == "\u0430"
    assert foreign_in("arn") is None
    assert clipped("x" * 300, 5) == "xxxxx... (300 characters)"
