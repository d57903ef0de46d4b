"""Conditions of rows in the catalogue: what is true of a group, an orchestrator or a whole environment.

A condition is a mapping whose entries must all hold. A key is an attribute by its path, as
`settings.deep_health_checks` of a group; a value is what it must be:

- `set` and `unset`: there is something, or nothing (None, False, 0, an empty list);
- a list: any of these;
- anything else: exactly this.

What is not known of an instance type is neither true nor false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ultracluster.catalog import InstanceType
from ultracluster.model import Group

_UNKNOWN = object()


def holds(where: Mapping[str, Any], part: object) -> bool | None:
    """Whether all entries are true of `part`; None where one is not known and none is false."""
    answers = [_is(wanted, _value(path, part)) for path, wanted in where.items()]
    if False in answers:
        return False
    return None if None in answers else True


def _is(wanted: Any, found: Any) -> bool | None:
    if found is _UNKNOWN:
        return None
    if wanted in ("set", "unset"):
        return bool(found) is (wanted == "set")
    if isinstance(wanted, list):
        return found in cast("list[Any]", wanted)
    return found == wanted


def _value(path: str, part: object) -> Any:
    for name in path.split("."):
        before, part = part, getattr(part, name, None)
        if part is None:
            # of a type an accelerator that is None is none; every other figure is then not known
            of_type = isinstance(before, InstanceType) and name != "accelerator"
            return _UNKNOWN if of_type or (isinstance(before, Group) and name == "type") else None
    return part
