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
    "acceptance gates": Habit(pages=True, ends=_READING),
    "acceptance judge": Habit(waits=("files",), pages=True, ends=_ANSWER),
    "acceptance manifest": Habit(ends=_FILE),
    "acceptance script": Habit(ends=_FILE),
    "capacity buy": Habit(changes=True, waits=("AWS",), next=(Next(step="preflight {environment}"),)),
    "capacity search": Habit(
        waits=("AWS",), pages=True, next=(Next(step="capacity buy {environment}", given=("environment",)),)
    ),
    "choose": Habit(pages=True, ends="its answer ends with the command"),
    "connect": Habit(waits=("AWS",), ends="its answer is the command"),
    "cost": Habit(waits=("AWS",), pages=True, next=(Next(step="preflight {environment}"),)),
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
    "explain-placement": Habit(waits=("AWS",), pages=True, ends=_ANSWER),
    "image list": Habit(pages=True, ends="its last line names the command"),
    "image recipe": Habit(ends=_FILE),
    "image record": Habit(ends=_FILE),
    "image show": Habit(pages=True, ends=_READING),
    "import": Habit(waits=("AWS",), next=(Next(step="validate {to}"),)),
    "init": Habit(next=(Next(step="validate {output}"),)),
    "job cancel": Habit(changes=True, waits=("AWS",), next=(Next(step="job list {environment}"),)),
    "job endpoint": Habit(ends=_FILE),
    "job jax": Habit(ends=_FILE),
    "job list": Habit(waits=("AWS",), pages=True, ends=_READING),
    "job logs": Habit(waits=("AWS",), ends=_READING),
    "job notebook": Habit(changes=True, waits=("AWS",), ends="the notebook was it"),
    "job preload": Habit(ends=_FILE),
    "job pytorch": Habit(ends=_FILE),
    "job ray": Habit(ends=_FILE),
    "job serve": Habit(ends=_FILE),
    "job shell": Habit(changes=True, waits=("AWS",), ends="the shell was it"),
    "job submit": Habit(
        changes=True, waits=("AWS",), next=(Next(step="job list {environment}", unless=("dry_run",)),)
    ),
    "move": Habit(waits=("AWS",), pages=True, next=(Next(step="validate {write}"),)),
    "new": Habit(ends="it lists several, and a `cd` is the first"),
    "nodes add": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes delete": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes describe": Habit(waits=("AWS",), pages=True, ends=_READING),
    "nodes health-check": Habit(
        changes=True,
        waits=("AWS",),
        next=(Next(step="nodes list {environment} --status DeepHealthCheckInProgress", unless=("dry_run",)),),
    ),
    "nodes list": Habit(waits=("AWS",), pages=True, ends=_READING),
    "nodes reboot": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes replace": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes restore": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "nodes settle": Habit(waits=("AWS",), ends=_ANSWER),
    "nodes why": Habit(ends=_ANSWER),
    "observability apply": Habit(
        changes=True, waits=("AWS",), next=(Next(step="observability apply {environment}", codes=(3,)),)
    ),
    "observability render": Habit(ends=_FILE),
    "permissions": Habit(waits=("AWS",), pages=True, ends=_FILE),
    "plan": Habit(waits=("files",), pages=True, next=(Next(step="preflight {environment}"),)),
    "preflight": Habit(
        changes=True,
        changes_with=("request_quotas", "bootstrap"),
        waits=("AWS",),
        pages=True,
        next=(Next(step="deploy {environment}", unless=("request_quotas",)),),
    ),
    "prices update": Habit(waits=("AWS",), next=(Next(step="cost {environments} --strict"),)),
    "release check": Habit(waits=("downloads",), pages=True, ends=_ANSWER),
    "release list": Habit(pages=True, ends=_READING),
    "release lock": Habit(
        waits=("AWS", "downloads"),
        next=(Next(step="deploy {environment}"), Next(step="release check {file}")),
    ),
    "release mirror": Habit(
        waits=("AWS", "downloads"), next=(Next(step="deploy {environment}", unless=("dry_run",)),)
    ),
    "release schema": Habit(ends=_FILE),
    "release show": Habit(pages=True, next=(Next(step="release check {release}"),)),
    "render parallelcluster": Habit(waits=("AWS",), ends="it prints the command of ParallelCluster"),
    "render slurm-accounts": Habit(ends=_FILE),
    "render task-governance": Habit(ends=_FILE),
    "render team-namespaces": Habit(ends=_FILE),
    "rules": Habit(pages=True, ends=_READING),
    "schema": Habit(ends=_FILE),
    "software pin": Habit(waits=("AWS",), next=(Next(step="validate {environment}"),)),
    "software update": Habit(changes=True, waits=("AWS",), next=(_LIST,)),
    "synth": Habit(waits=("a synth",), next=(Next(step="preflight {environment}"),)),
    "teams apply": Habit(changes=True, waits=("AWS",), ends=_ANSWER),
    "users apply": Habit(changes=True, waits=("AWS",), ends=_ANSWER),
    "users list": Habit(pages=True, ends=_READING),
    "users token": Habit(waits=("AWS",), ends=_ANSWER),
    "validate": Habit(waits=("files",), next=(Next(step="plan {environments}"),)),
    "wait": Habit(
        waits=("AWS",),
        next=(Next(step="connect {environment}"), Next(step="wait {environment}", codes=(3, 130))),
    ),
}
"""By the words of the command."""
