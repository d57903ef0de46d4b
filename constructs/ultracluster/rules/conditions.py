"""Conditions of rows in the catalogue: what is true of a group, an orchestrator or a whole environment.

A condition is a mapping whose entries must all hold. A key is an attribute by its path, as
`settings.deep_health_checks` of a group; a value is what it must be:

- `set` and `unset`: there is something, or nothing (None, False, 0, an empty list);
- a list: any of these;
- `{above: 3}` or `{above: settings.count}`: a number above this one, or above that attribute;
- anything else: exactly this.

What is not known of an instance type is neither true nor false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ultracluster.catalog import InstanceType
from ultracluster.model import Group

_UNKNOWN = object()


def holds(where: Mapping[str, Any], part: object) -> bool | None:
    """Return whether all entries are true of `part`; None where one is not known and none is false."""
    answers = [_is(_wanted(wanted, part), _value(path, part)) for path, wanted in where.items()]
    if False in answers:
        return False
    return None if None in answers else True


def _wanted(wanted: Any, part: object) -> Any:
    above = _above(wanted)
    return {"above": _value(above, part)} if isinstance(above, str) else wanted


def _above(wanted: Any) -> Any:
    return cast("dict[str, Any]", wanted)["above"] if isinstance(wanted, dict) else None


def _is(wanted: Any, found: Any) -> bool | None:
    if found is _UNKNOWN:
        return None
    if wanted in ("set", "unset"):
        return bool(found) is (wanted == "set")
    if isinstance(wanted, list | tuple):
        return found in cast("Sequence[Any]", wanted)
    if (above := _above(wanted)) is not None:
        return isinstance(found, int | float) and found > above
    return found == wanted


def _value(path: str, part: object) -> Any:
    for name in path.split("."):
        before, part = part, getattr(part, name, None)
        if isinstance(before, InstanceType) and name != "accelerator" and _unknown(before, part):
            return _UNKNOWN
        if part is None:
            return _UNKNOWN if isinstance(before, Group) and name == "type" else None
    return part


def _unknown(kind: InstanceType, figure: object) -> bool:
    """Return whether a figure of a type is not known.

    A type that the file declares, or that is estimated by its name, has some that are 0 for want of a source.
    """
    return figure is None or (not figure and (kind.declared or kind.estimated))
