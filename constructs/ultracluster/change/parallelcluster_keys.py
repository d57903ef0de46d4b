"""Which key of ParallelCluster's configuration decides on a change, and what its update policy is.

The table is ParallelCluster's own, written by `tools/parallelcluster_updates.py`. A section or an element
that comes or goes as a whole is judged by its own policy, and not by those of the keys below it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from ultracluster.change.changes import Steps
from ultracluster.change.template import Json, as_mapping

CONFIGURATION = "ClusterConfiguration"


@dataclass(frozen=True, slots=True)
class Changed:
    """A key that ParallelCluster sees changed."""

    key: str
    """As in the table: `Scheduling.SlurmQueues[].CapacityType`."""
    policy: str
    before: Any
    """None where it was not there."""
    after: Any
    names: tuple[str, ...] = ()
    """Of the elements of lists that it is in, outermost first."""
    element: bool = False
    """An element of a list comes or goes."""

    @property
    def in_queue(self) -> bool:
        """Whether it is in a queue, or one."""
        return self.key.startswith("Scheduling.SlurmQueues[]")


def changed_key(steps: Steps, before: Json, after: Json) -> Changed:
    """The key that decides on a change at a path.

    Args:
        steps: below the configuration.
        before: the whole configuration until now.
        after: the whole one then.
    """
    keys, path = policies(), ""
    names: list[str] = []
    old, new = before, after
    found = Changed("", "UNSUPPORTED", before, after)
    rest = list(steps)
    while rest:
        name = rest.pop(0)
        path = f"{path}.{name}" if path else name
        old_value, new_value = old.get(name), new.get(name)
        if f"{path}[]" in keys:
            path += "[]"
            if not rest:
                return Changed(path, keys[path], old_value, new_value, tuple(names), element=True)
            element, key = rest.pop(0).strip("[]"), lists()[path]
            one, other = _element(old_value, key, element), _element(new_value, key, element)
            replaced = rest[:1] == [key] and one != other  # what names it is another: one goes, one comes
            found = Changed(path, keys[path], one, other, (*names, element), element=True)
            if one is None or other is None or replaced:
                return found
            names.append(element)
            old, new = one, other
        elif path in keys:
            found = Changed(path, keys[path], old_value, new_value, tuple(names))
            comes_or_goes = bool(old_value) != bool(new_value)
            if path not in _sections() or (comes_or_goes and keys[path] != "IGNORED"):
                return found
            old, new = as_mapping(old_value), as_mapping(new_value)
        else:
            return found  # a key that the package does not know: its section's policy
    return found


@cache
def policies() -> dict[str, str]:
    """Policy by key."""
    return _table()["keys"]


@cache
def lists() -> dict[str, str]:
    """By which key the elements of each list of sections are known."""
    return _table()["lists"]


def chef_attributes() -> list[str]:
    """Those of Chef that an update may change."""
    return _table()["updatable_chef_attributes"]


def source() -> str:
    """Where the table comes from, and its date."""
    about = _table()["about"]
    return f"{about['source']} ({about['date']})"


def _element(elements: Any, key: str, name: str) -> Json | None:
    """The element that is called so, or has that place where nothing has the name."""
    if not isinstance(elements, list):
        return None
    rows = [as_mapping(one) for one in cast("list[Any]", elements)]
    named = next((row for row in rows if row.get(key) == name), None)
    if named is None and name.isdigit() and int(name) < len(rows):
        return rows[int(name)]
    return named


@cache
def _sections() -> frozenset[str]:
    keys = policies()
    return frozenset(key for key in keys if any(other.startswith(f"{key}.") for other in keys))


@cache
def _table() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("parallelcluster_updates.json").read_text(encoding="utf-8"))


__all__ = ["CONFIGURATION", "Changed", "changed_key", "chef_attributes", "lists", "policies", "source"]
