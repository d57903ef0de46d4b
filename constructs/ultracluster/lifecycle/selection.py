"""Which of the lifecycle scripts one kind of node runs: its hash covers nothing else.

A changed hash replaces nodes, or brings them to new scripts one by one. A step of another entry, another
release or a tool for people must not do that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ultracluster.scripts_folder import own_release, script_files

TOOLS = ("acceptance/", "lib/", "verify/")
"""What people run on a node, by hand or in a job: the proofs, and the libraries that they read."""

OWN = "own"
"""Stands in the table of the steps where the team's own run; their files come with `cluster.json`."""

_WHOLE = {
    "health": ("health/", "health_loop/", "lib/health", "lib/run_check.sh"),
    "metrics": ("metrics/", "lib/telemetry.sh"),
    "proof": ("lib/health",),
}
"""Describe what a step reads or installs as a whole, and hardly another step does: by how the paths begin."""
_STEPS = "lib/steps.sh"
_VARIABLE = re.compile(r'^readonly (STEPS_\w+)="([^"]*)"$', re.MULTILINE)
_ENTRY = re.compile(r'^\s*\[(\w+)\]="([^"]*)"$', re.MULTILINE)
_ON_DEMAND = ("files/", "verify/")
"""Folders of which an entry has what its own scripts name."""


def steps_of(folder: Path, entry: str) -> tuple[str, ...]:
    """The steps of an entry (without `.sh`), in their order, by the table in lib/steps.sh.

    Raises:
        ValueError: the table has no such entry.
    """
    entries = _table(folder)
    if entry not in entries:
        raise ValueError(f"{folder / _STEPS} has no entry {entry!r}; it has {', '.join(sorted(entries))}")
    return entries[entry]


def files_of(
    folder: Path, entries: Sequence[str], *, release: str | None = None, also: Sequence[str] = ()
) -> list[Path]:
    """The scripts that nodes with these entries read, sorted.

    These are the entries, their libraries, the steps of the entries, the lock of the release, of `files/` and
    `verify/` what any of them names, and what a step installs as a whole.

    Args:
        folder: the lifecycle scripts.
        entries: names of entry scripts, without `.sh`.
        release: the release that the nodes are brought to; every release where it is not known.
        also: further files, by their path in the folder.

    Raises:
        ValueError: an entry or a file does not exist.
    """
    names = {file.relative_to(folder).as_posix(): file for file in script_files(folder)}
    if release and (own := own_release(release)):
        names[f"releases/{release}.lock"] = own
    apart = tuple(path for paths in _WHOLE.values() for path in paths)
    chosen = {name for name in names if name.startswith("lib/") and not name.startswith(apart)} | set(also)
    for entry in entries:
        steps = [step for step in steps_of(folder, entry) if step != OWN]
        chosen |= {f"{entry}.sh", *(f"steps/{step}.sh" for step in steps)}
        whole = tuple(path for step in steps for path in _WHOLE.get(step, ()))
        chosen |= {name for name in names if whole and name.startswith(whole)}
    chosen |= {f"releases/{release}.lock"} if release else {n for n in names if n.startswith("releases/")}
    if missing := sorted(chosen - names.keys()):
        raise ValueError(f"{folder} has no {', '.join(missing)}")
    waiting = {name for name in names if name.startswith(_ON_DEMAND)} - chosen
    new = chosen
    while new:
        text = "\n".join(_code(names[name]) for name in sorted(new) if name.endswith(".sh"))
        new = {name for name in waiting if _named(name, text)}
        chosen |= new
        waiting -= new
    return [names[name] for name in sorted(chosen)]


def tool_files(folder: Path) -> list[Path]:
    """What people are given besides the nodes' own scripts, sorted."""
    return [file for file in script_files(folder) if file.relative_to(folder).as_posix().startswith(TOOLS)]


def _named(path: str, text: str) -> bool:
    """Whether scripts speak of a file: of one in `files/` only by its name, of others without the suffix."""
    folder, name = path.split("/", 1)
    # looked at last is what precedes it: what begins with a literal is searched a hundred times as fast
    in_files = folder == "files"
    word = re.escape(name if in_files else path.rsplit(".", 1)[0])
    pattern = rf"{word}(?![\w-])(?<![\w.-]{word})" if in_files else rf"{word}\b(?<!\w{word})"
    return re.search(pattern, text) is not None


def _code(script: Path) -> str:
    lines = script.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _table(folder: Path) -> dict[str, tuple[str, ...]]:
    text = (folder / _STEPS).read_text(encoding="utf-8")
    values: dict[str, str] = {}
    for name, value in _VARIABLE.findall(text):
        values[name] = _expanded(value, values)
    return {name: tuple(_expanded(value, values).split()) for name, value in _ENTRY.findall(text)}


def _expanded(value: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(STEPS_\w+)\}?", lambda match: values[match[1]], value)
