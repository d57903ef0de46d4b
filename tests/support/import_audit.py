"""Every key that another tool knows, and what `import` does with it: carried over, told, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from ultracluster.imports import ledger
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import Drafted

Draft = Callable[[dict[str, Any]], Drafted]
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "string": ("x", "7", "slurm", "SPOT", "Efs", "HDD", "gp2", "capacity-block"),
    "integer": (7, 1),
    "boolean": (True, False),
    "object": ({"key": "x"}, "x"),
    "timestamp": ("2026-11-23",),
}
"""Values to try for a key of a type; `enum:X|Y` is X or Y."""
_ORDER = ("carried", "told", "nothing", "refused", "unknown")


def answers(shape: dict[str, Any], bases: list[dict[str, Any]], draft: Draft) -> dict[str, str]:
    """Key by its path -> `carried`, `told`, `refused`, `unknown` (a row that knows nothing of it) or
    `nothing`; the best of what it is in any of the documents.

    Args:
        shape: mappings as mappings, lists as a list of one, else the name of a type.
        bases: documents that are imported, into which one key is put at a time.
    """
    firsts = [(base, _outcome(draft, base)) for base in bases]
    for base in bases:
        draft(deepcopy(base)).ledger.enough()  # a document that is refused by itself says nothing of its keys
    return {
        path: min((_answer(path, kind, base, draft, first) for base, first in firsts), key=_ORDER.index)
        for path, kind in leaves(shape)
    }


def leaves(shape: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Paths of keys with the names of their types; lists are `[]`."""
    if isinstance(shape, dict):
        for key, below in shape.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif isinstance(shape, list):
        yield from leaves(shape[0], f"{path}[]")
    else:
        yield path, shape


def _answer(path: str, kind: str, base: dict[str, Any], draft: Draft, first: Any) -> str:
    found = "nothing"
    values = kind[5:].split("|") if kind.startswith("enum:") else CANDIDATES.get(kind, ("x",))
    for value in values:
        changed = deepcopy(base)
        _put(changed, path.replace("[]", ".[]").split("."), value)
        outcome = _outcome(draft, changed)
        if isinstance(outcome, str):
            found = outcome if found == "nothing" else found
        elif outcome[2] != first[2]:
            return "unknown"
        elif outcome[0] != first[0]:
            return "carried"
        elif outcome[1] != first[1]:
            found = "told"
    return found


def _outcome(draft: Draft, document: dict[str, Any]) -> Any:
    """Data, rows with a reason, and rows without one; `refused` where there is none."""
    try:
        made = draft(document)
        rows = made.ledger.close()
    except ImportRefusedError:
        return "refused"
    known = {(row.where, row.why) for row in rows if (row.why, row.todo) != ledger.OTHER}
    unknown = {row.where for row in rows if (row.why, row.todo) == ledger.OTHER}
    return made.data, known, unknown


def _put(at: Any, names: list[str], value: Any) -> None:
    """Put a value at a path; a list has it in its first entry."""
    name, rest = names[0], names[1:]
    if name == "[]":
        if not rest:
            at.append(value)
            return
        if not at:
            at.append({})
        _put(at[0], rest, value)
    elif not rest:
        at[name] = value
    else:
        below = at.get(name)
        if not isinstance(below, list if rest[0] == "[]" else dict):
            at[name] = [] if rest[0] == "[]" else {}
        _put(at[name], rest, value)
