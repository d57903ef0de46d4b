"""How two documents of teams differ: accounts by name, and their QOS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Kind = Literal["new", "changed", "removed", "same"]
Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDifference:
    """One account, or one QOS, in both documents."""

    what: Literal["account", "qos"]
    name: str
    kind: Kind
    """Beside the document that nodes have."""
    details: tuple[str, ...] = ()
    """What is changed: `shares: 8 -> 16`, `alice joins`."""


def team_differences(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[TeamDifference]:
    """Each QOS and account of either document, by name."""
    found = [_difference("qos", name, one, other) for name, one, other in _pairs(old, new, "qos")]
    users = _rows(old, "users"), _rows(new, "users")
    for name, one, other in _pairs(old, new, "accounts"):
        difference = _difference("account", name, one, other)
        defaults = tuple(_defaults(name, *users)) if other is not None else ()
        if defaults and difference.kind in ("same", "changed"):
            details = (*difference.details, *defaults)
            difference = TeamDifference(what="account", name=name, kind="changed", details=details)
        found.append(difference)
    return found


def _pairs(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], key: str
) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    before, after = _rows(old, key), _rows(new, key)
    for name in sorted(before.keys() | after.keys()):
        yield name, before.get(name), after.get(name)


def _difference(
    what: Literal["account", "qos"], name: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> TeamDifference:
    if new is None:
        return TeamDifference(what=what, name=name, kind="removed")
    details = tuple(_details(old or {}, new))
    kind = "new" if old is None else "changed" if details else "same"
    return TeamDifference(what=what, name=name, kind=kind, details=details)


def _details(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in {**new, **old}:
        value = new.get(key)
        if key in ("name", "users") or value == old.get(key):
            continue
        yield f"{key}: {_text(old[key])} -> {_text(value)}" if key in old else f"{key}: {_text(value)}"
    before, after = _names(old.get("users")), _names(new.get("users"))
    yield from (f"{user} joins" for user in after if user not in before)
    yield from (f"{user} leaves" for user in before if user not in after)


def _defaults(account: str, old: Rows, new: Rows) -> Iterator[str]:
    """Users for whom this account becomes the default."""
    for user, row in new.items():
        before = old.get(user, {}).get("default_account")
        if row.get("default_account") == account and before not in (None, account):
            yield f"default of {user}, instead of {before}"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return (
            ", ".join(f"{key}={amount}" for key, amount in cast("dict[str, object]", value).items()) or "none"
        )
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value))) or "none"
    return "none" if value in ("", None) else str(value)


def _names(value: object) -> list[str]:
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _rows(document: Mapping[str, Any] | None, key: str) -> Rows:
    """By name; a document that somebody broke has none."""
    rows = (document or {}).get(key)
    found: Rows = {}
    for row in cast("list[object]", rows) if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(name := cast("dict[str, Any]", row).get("name"), str):
            found[name] = cast("dict[str, Any]", row)
    return found
