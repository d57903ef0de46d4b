"""The last line of a node's scripts, and lines that look like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.software.last_word import Word, last_word


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("READY", Word("ready")),
        ("READY hyperpod_on_create in 43 s\n", Word("ready", "hyperpod_on_create in 43 s")),
        ("FAILED efa: the module does not load", Word("failed", "efa: the module does not load")),
        ("DEGRADED gdrcopy, dcgm: no repository", Word("degraded", "no repository", ("gdrcopy", "dcgm"))),
        ("2026-11-22T08:00:00Z WARN  DEGRADED dcgm: old", Word("degraded", "old", ("dcgm",))),
        ("FAILED 3 of 4 tests", None),
        ("ALREADY there", None),
        ("make: READY", None),
        ("READYNESS probe", None),
        ("DEGRADED", None),
        ("", None),
    ],
)
def test_last_lines(line: str, word: Word | None) -> None:
    assert last_word(line) == word


@given(st.text())
def test_any_line_is_survived(line: str) -> None:
    last_word(line)
