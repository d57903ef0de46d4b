"""The step after a command, in one line on standard error, for a person at a terminal."""

from __future__ import annotations

import shlex
import string
import sys
from collections.abc import Mapping
from typing import Any

from ultracluster.cli import terminal
from ultracluster.cli.habits import HABITS, Next
from ultracluster.config.plain_text import one_line


def tell(words: str, given: Mapping[str, Any], code: int) -> None:
    """Say what comes after a command; nothing where nobody looks, or where its answer is for a machine.

    Args:
        words: of the command, as `nodes list`.
        given: its parameters.
        code: its exit code.
    """
    if terminal.quiet() or terminal.is_part() or given.get("as_json"):
        return
    if not terminal.is_terminal(sys.stderr):
        return
    if step := next_step(words, given, code):
        sys.stdout.flush()
        terminal.remark(one_line(f"next: ultracluster {step}"))


def next_step(words: str, given: Mapping[str, Any], code: int) -> str:
    """The command that comes next, with its arguments; empty if there is none."""
    habit = HABITS.get(words)
    steps = (_filled(one, given) for one in habit.next if code in one.codes) if habit else ()
    return next((step for step in steps if step), "")


def _filled(one: Next, given: Mapping[str, Any]) -> str:
    names = [name for _, name, _, _ in string.Formatter().parse(one.step) if name]
    values = {name: _one(given.get(name)) for name in names}
    if not all(values.values()) or not all(given.get(name) for name in one.given):
        return ""
    if any(given.get(name) for name in one.unless):
        return ""
    text = one.step.format(**{name: shlex.quote(value) for name, value in values.items()})
    return f"{text}{_account(text, given)}"


def _one(value: Any) -> str:
    """As a word; empty where there is none, or where there are several."""
    if isinstance(value, list | tuple):
        return str(value[0]) if len(value) == 1 else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value or "")


def _account(text: str, given: Mapping[str, Any]) -> str:
    """The same credentials, where the next command asks AWS, too."""
    profile = str(given.get("profile") or "")
    words = " ".join(word for word in text.split() if not word.startswith("-"))
    habit = next((habit for name, habit in HABITS.items() if f"{words} ".startswith(f"{name} ")), None)
    return f" --profile {shlex.quote(profile)}" if profile and habit and "AWS" in habit.waits else ""
