"""Bounds of one file, each met and passed by one."""

from __future__ import annotations

import pytest

from ultracluster.config.yaml_bounds import (
    MOST_LEVELS,
    MOST_VALUES,
    TooDeepError,
    TooMuchError,
    compose,
    directive_line,
)


def test_depth() -> None:
    compose("[" * MOST_LEVELS + "]" * MOST_LEVELS)
    with pytest.raises(TooDeepError):
        compose("[" * (MOST_LEVELS + 1) + "]" * (MOST_LEVELS + 1))


def test_values() -> None:
    with pytest.raises(TooMuchError):
        compose("[" + "1," * (2 * MOST_VALUES) + "]")


def test_an_anchor_may_be_used_again_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    assert compose("a: &x 1\nb: &x 2\n")
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\n%b", 0), ("%YAML 1.2\n---", 1), ("\n# x\n%A", 3), ("", 0), ("a: |\n  x\n% y", 0)],
)
def test_lines_for_the_parser(text: str, line: int) -> None:
    assert directive_line(text) == line
