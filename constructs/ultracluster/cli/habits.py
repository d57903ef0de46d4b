"""What every command has in common with the others: a row says what it may wait for, whether its answer is
paged, and what comes next.

A new command needs a row here; tests/cli/test_habits.py names what is missing. Light: there is only data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Waits = Literal["AWS", "a synth", "downloads", "files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """A step after a command."""

    step: str
    """The command, with `{parameter}` for what this one was given. A list counts where it has one word."""
    codes: tuple[int, ...] = (0,)
    """Exit codes after which it makes sense."""
    given: tuple[str, ...] = ()
    """Parameters that were given, too, besides those of the text."""
    unless: tuple[str, ...] = ()
    """Parameters that were not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """One command."""

    waits: tuple[Waits, ...] = ()
    """What may take more than two seconds, and then shows a line or a bar; empty: nothing does."""
    changes: bool = False
    """True if it changes something in the account; it then has `--account`."""
    changes_with: tuple[str, ...] = ()
    """Flags without which it changes nothing."""
    pages: bool = False
    """Whether a long answer is shown page by page."""
    next: tuple[Next, ...] = ()
    """The first that fits is told."""
    ends: str = ""
    """Why there is no next step, where there is none."""


_ANSWER = "what to do is in its answer"
_FILE = "its answer is a file for another program"
_READING = "it is read, and followed by nothing in particular"
_LIST = Next(step="nodes list {environment}", codes=(0, 3), unless=("dry_run",))

HABITS: dict[str, Habit] = {
    "acceptance": Habit(waits=("files",), pages=True, ends=_ANSWER),
    "apply": Habit(changes=True, waits=("AWS",), next=(Next(step="apply {what} {environment}", codes=(3,)),)),
    "capacity buy": Habit(changes=True, waits=("AWS",), next=(Next(step="preflight {environment}"),)),
    "capacity search": Habit(
        waits=("AWS",), pages=True, next=(Next(step="capacity buy {environment}", given=("environment",)),)
    ),
    "choose": Habit(pages=True, ends="its answer ends with the command"),
    "connect": Habit(waits=("AWS",), ends="its answer is the command"),
    "cost": Habit(
        waits=("AWS",),
        pages=True,
        next=(
            Next(step="cost {environments} --strict", given=("refresh",)),
            Next(step="preflight {environments}"),
        ),
    ),
    "deploy": Habit(
        changes=True,
        waits=("AWS", "a synth"),
        next=(Next(step="connect {environment}"), Next(step="doctor {environment}", codes=(1, 3))),
    ),
    "destroy": Habit(changes=True, waits=("AWS", "a synth"), ends="nothing is left to do"),
    "diff": Habit(
        waits=("AWS", "a synth"),
        pages=True,
        next=(Next(step="deploy {environments}", codes=(0, 1), given=("deployed",)),),
    ),
    "doctor": Habit(waits=("AWS",), pages=True, next=(Next(step="nodes list {environment}"),)),
    "export": Habit(waits=("AWS",), ends=_FILE),
    "import": Habit(waits=("AWS",), next=(Next(step="validate {to}"),)),
    "init": Habit(next=(Next(step="validate {output}"),)),
    "job cancel": Habit(changes=True, waits=("AWS",), next=(Next(step="job list {environment}"),)),
    "job list": Habit(waits=("AWS",), pages=True, ends=_READING),
    "job logs": Habit(waits=("AWS",), ends=_READING),
    "job shell": Habit(changes=True, waits=("AWS",), ends="the shell was it"),
    "job submit": Habit(
        changes=True, waits=("AWS",), next=(Next(step="job list {environment}", unless=("dry_run",)),)
    ),
    "job why": Habit(waits=("AWS",), pages=True, ends=_ANSWER),
    "job write": Habit(ends=_FILE),
    "list": Habit(waits=("AWS",), ends="which one comes next is yours to choose"),
    "move": Habit(waits=("AWS",), pages=True, next=(Next(step="validate {write}"),)),
    "new": Habit(ends="it lists several, and a `cd` is the first"),
    "nodes add": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes delete": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes health-check": Habit(
        changes=True,
        waits=("AWS",),
        next=(Next(step="nodes list {environment} --status DeepHealthCheckInProgress", unless=("dry_run",)),),
    ),
    "nodes list": Habit(waits=("AWS",), pages=True, ends=_READING),
    "nodes reboot": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes replace": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "permissions": Habit(waits=("AWS",), pages=True, ends=_FILE),
    "plan": Habit(waits=("files",), pages=True, next=(Next(step="preflight {environment}"),)),
    "preflight": Habit(
        changes=True,
        changes_with=("request_quotas", "bootstrap"),
        waits=("AWS",),
        pages=True,
        next=(Next(step="deploy {environment}", unless=("request_quotas",)),),
    ),
    "rules": Habit(pages=True, ends=_READING),
    "schema": Habit(ends=_FILE),
    "serve": Habit(ends=_FILE),
    "software lock": Habit(
        waits=("AWS", "downloads"),
        next=(Next(step="deploy {environment}"), Next(step="software show {file} --check")),
    ),
    "software mirror": Habit(
        waits=("AWS", "downloads"), next=(Next(step="deploy {environment}", unless=("dry_run",)),)
    ),
    "software recipe": Habit(ends=_FILE),
    "software record": Habit(ends=_FILE),
    "software show": Habit(waits=("downloads",), pages=True, ends=_READING),
    "software update": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "status": Habit(waits=("AWS",), next=(Next(step="doctor {environment}", codes=(1,)),)),
    "synth": Habit(waits=("a synth",), next=(Next(step="preflight {environment}"),)),
    "users": Habit(waits=("AWS",), pages=True, ends=_READING),
    "validate": Habit(waits=("files",), next=(Next(step="plan {environments}"),)),
    "wait": Habit(
        waits=("AWS",),
        next=(Next(step="connect {environment}"), Next(step="wait {environment}", codes=(3, 130))),
    ),
}
"""By the words of the command."""
