"""How two documents of users differ, and what of it needs a word from a person first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Kind = Literal["new", "changed", "removed", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One user in both documents."""

    name: str
    kind: Kind
    user: Mapping[str, Any]
    """As the newer document has it, or the older one of those who are removed."""
    details: tuple[str, ...] = ()
    """What is changed: `groups: vision -> data`."""


def differences(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[Difference]:
    """Each user of either document, by name."""
    before, after = _users(old), _users(new)
    found: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            found.append(Difference(name=name, kind="removed", user=before[name]))
        elif name not in before:
            found.append(Difference(name=name, kind="new", user=after[name]))
        else:
            details = tuple(_details(before[name], after[name]))
            found.append(
                Difference(
                    name=name, kind="changed" if details else "same", user=after[name], details=details
                )
            )
    return found


def groups_changed(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[str]:
    """Groups with another id, which files do not follow."""
    before, after = _groups(old), _groups(new)
    return [
        f"group {name}: {before[name]} -> {gid}; files of {before[name]} stay so"
        for name, gid in sorted(after.items())
        if name in before and before[name] != gid
    ]


def impossible(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[str]:
    """Return what no node would do: ids that would give files to somebody else."""
    before, after = _users(old), _users(new)
    owners = {user.get("uid"): name for name, user in before.items()}
    found: list[str] = []
    for name, user in sorted(after.items()):
        known = before.get(name, {}).get("uid", user["uid"])
        owner = owners.get(user["uid"], name)
        if known != user["uid"]:
            found.append(
                f"{name}: the id {known} cannot become {user['uid']}: files stay with {known}. Write "
                f"{known}, or give the user another name"
            )
        elif owner != name:
            found.append(
                f"{name}: the id {user['uid']} is {owner}'s, whose files stay: they would be {name}'s. Take "
                "another id"
            )
    return found


def is_most(found: list[Difference]) -> bool:
    """Whether more than half of the users are removed: nodes keep them unless the document says `any`."""
    removed = sum(one.kind == "removed" for one in found)
    before = sum(one.kind != "new" for one in found)
    return 2 * removed > before


def _details(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        if key == "keys":
            found.append(f"keys: {len(one or [])} -> {len(other or [])}")
        else:
            found.append(f"{key}: {_plain(one)} -> {_plain(other)}")
    return found


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in cast("list[Any]", value)) or "none"
    return str(value)


def _users(document: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    return {str(row["name"]): row for row in _rows(document, "users")}


def _groups(document: Mapping[str, Any] | None) -> dict[str, Any]:
    return {str(row["name"]): row.get("gid") for row in _rows(document, "groups")}


def _rows(document: Mapping[str, Any] | None, key: str) -> Iterator[dict[str, Any]]:
    """Of what another version, or somebody else, may have written."""
    rows = (document or {}).get(key)
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        if isinstance(row, dict) and "name" in row:
            yield cast("dict[str, Any]", row)
