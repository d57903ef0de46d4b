"""What fixes a finding, as data: changes of the file that a program can make, and their words for people.

A remedy has options, each of which fixes the finding by itself; the first is the nearest. The words that are
shown are rendered from the options, so that advice and data cannot differ. Where only a person can tell what
to write there is no option, and the remedy says what kind of thing is lacking.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypedDict, cast

from ultracluster.config.yaml_path import YamlPath, dotted

Lacking = Literal["decision", "fact", "action"]
"""Why a remedy has no option: several ways are open and only the user can choose; a value is needed that only
the user knows (an id, an ARN); something is to be done or looked at outside the file."""


class Drop(Enum):
    """Stands for "no such key" where a value stands otherwise."""

    DROP = "drop"


DROP = Drop.DROP


class ChangeRow(TypedDict, total=False):
    """One change of a file: a value written, a key removed or renamed."""

    path: list[str | int]
    """Keys and positions from the top of the file."""
    value: Any
    remove: bool
    rename: str


class RemedyRow(TypedDict):
    """What mends a finding."""

    options: list[list[ChangeRow]]
    """Each a set of changes that mends it."""
    lacking: Lacking | None
    """Why there is no option: only a person can choose, a value is needed that only the user knows, or
    something is to be done outside the file."""
    note: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the file: `path` gets `value`, goes (`DROP`), or has its last key renamed."""

    path: YamlPath
    value: Any = DROP
    rename: str = ""

    def as_json(self) -> ChangeRow:
        if self.rename:
            return {"path": list(self.path), "rename": self.rename}
        if self.value is DROP:
            return {"path": list(self.path), "remove": True}
        return {"path": list(self.path), "value": self.value}


Option = tuple[Change, ...]
_Relative = tuple[int | None, YamlPath, Any, str]
"""How many parts of the finding's path to leave away (None: all), what follows, value, new name."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Options that each fix a finding, relative to its path until `placed` gives them one."""

    options: tuple[Option, ...] = ()
    note: str = ""
    """What a person should know or do in addition; the whole text where there is no option."""
    lacking: Lacking | None = None
    """Set where there is no option."""
    relative: tuple[tuple[_Relative, ...], ...] = field(default=(), repr=False)

    def __or__(self, other: Remedy) -> Remedy:
        """Both, this one first."""
        if self.lacking and not other.lacking:
            other, self = self, other
        notes = "; ".join(filter(None, (self.note, f"or {other.note}" if other.lacking else other.note)))
        return replace(
            self,
            relative=self.relative + other.relative,
            note=notes,
            lacking=self.lacking if not (self.relative or other.relative) else None,
        )

    def __and__(self, other: Remedy) -> Remedy:
        """Each option of this one together with the first of the other: both changes are needed."""
        more = other.relative[0] if other.relative else ()
        notes = "; ".join(filter(None, (self.note, other.note)))
        return replace(self, relative=tuple((*one, *more) for one in self.relative), note=notes)

    def noting(self, note: str) -> Remedy:
        """The same with words added."""
        return replace(self, note="; ".join(filter(None, (self.note, note))))

    def placed(self, path: YamlPath) -> Remedy:
        """The same with paths from the top of the file, for a finding at `path`."""
        options = tuple(
            tuple(
                Change((*(() if up is None else path[: len(path) - up]), *keys), value, name)
                for up, keys, value, name in option
            )
            for option in self.relative
        )
        return replace(self, options=self.options + options, relative=())

    def text(self, path: YamlPath = ()) -> str:
        """In words, for a finding at `path`."""
        return "; ".join(filter(None, (_in_words(self.options, path), self.note)))

    def as_json(self) -> RemedyRow:
        return {
            "options": [[change.as_json() for change in option] for option in self.options],
            "lacking": self.lacking,
            "note": self.note or None,
        }


def write(*values: Any) -> Remedy:
    """One of these values in the place of the finding."""
    return Remedy(relative=tuple(((0, (), value, ""),) for value in values))


def drop() -> Remedy:
    """Remove what the finding is at."""
    return write(DROP)


def rename(name: str) -> Remedy:
    """Another name for the key that the finding is at."""
    return Remedy(relative=(((0, (), DROP, name),),))


def beside(**keys: Any) -> Remedy:
    """Write keys next to the one that the finding is at, or remove them (`DROP`)."""
    return _single((1, (name,), value) for name, value in keys.items())


def inside(**keys: Any) -> Remedy:
    """Write keys in what the finding is at."""
    return _single((0, (name,), value) for name, value in keys.items())


def relative(changes: Mapping[YamlPath, Any], *, up: int = 0) -> Remedy:
    """Write values at paths that begin `up` keys above what the finding is at, or remove them (`DROP`)."""
    return _single((up, path, value) for path, value in changes.items())


def whole(value: Any) -> Remedy:
    """Another value for what holds the key that the finding is at, or none (`DROP`)."""
    return Remedy(relative=(((1, (), value, ""),),))


def anywhere(changes: Mapping[YamlPath, Any]) -> Remedy:
    """Write values at these paths of the file."""
    return _single((None, path, value) for path, value in changes.items())


def ask(lacking: Lacking, words: str) -> Remedy:
    """No change can be named: what kind of thing only a person can give, and what it is."""
    return Remedy(note=words, lacking=lacking)


def either(*remedies: Remedy) -> Remedy:
    """Any of them, the first being the nearest."""
    first, *others = remedies
    for other in others:
        first |= other
    return first


def _single(changes: Any) -> Remedy:
    option = tuple((up, path, value, "") for up, path, value in changes)
    return Remedy(relative=(option,))


def apply(data: Any, option: Option) -> Any:
    """The data of a file with the changes of one option."""
    changed = copy.deepcopy(data)
    apply_to(changed, option)
    return changed


def apply_to(data: Any, option: Option) -> None:
    """Change the data itself; removals from lists come last, from the end."""
    later: list[YamlPath] = []
    for change in option:
        if change.value is DROP and not change.rename and isinstance(change.path[-1], int):
            later.append(change.path)
        else:
            _change(data, change)
    for path in sorted(later, key=lambda path: path[-1], reverse=True):
        _change(data, Change(path))


def _change(data: Any, change: Change) -> None:
    *parents, last = change.path
    target = data
    for part, following in zip(parents, change.path[1:], strict=True):
        if isinstance(target, dict) and cast("dict[Any, Any]", target).get(part) is None:
            target[part] = [] if isinstance(following, int) else {}
        if not _has(target, part):
            return  # another change took it away
        target = cast("Any", target)[part]
    if change.rename:
        renamed = {change.rename if key == last else key: value for key, value in target.items()}
        target.clear()
        target.update(renamed)
    elif change.value is DROP:
        if isinstance(target, list):
            if _has(target, last):
                del cast("list[Any]", target)[int(last)]
        else:
            target.pop(last, None)
    elif isinstance(target, list) and isinstance(last, int) and last >= len(cast("list[Any]", target)):
        cast("list[Any]", target).append(copy.deepcopy(change.value))
    else:
        cast("dict[Any, Any]", target)[last] = copy.deepcopy(change.value)


def _has(target: Any, part: str | int) -> bool:
    if isinstance(target, list):
        return isinstance(part, int) and part < len(cast("list[Any]", target))
    return isinstance(target, dict) and part in target


def _in_words(options: Sequence[Option], path: YamlPath) -> str:
    """`capacity_gib: 4800 or 7200`, `efa: true, or remove gds`."""
    parts: list[str] = []
    previous: YamlPath | None = None
    for option in options:
        change = option[0]
        plain = len(option) == 1 and change.value is not DROP and not change.rename
        if plain and previous == change.path:
            parts[-1] += f" or {flow(change.value)}"
        else:
            parts.append(" and ".join(_change_in_words(one, path) for one in option))
        previous = change.path if plain else None
    return ", or ".join(parts)


def _change_in_words(change: Change, path: YamlPath) -> str:
    # a part that is judged without a file is at no key
    key = change.path[-1] if change.path else "it"
    name = dotted(change.path) or "it"
    near = (path, path[:-1])
    if change.path == path or change.path[:-1] in near:
        name = str(key)
    elif change.path[: len(path)] == path and path:
        name = dotted(change.path[len(path) :])
    if change.rename:
        return f"{name} -> {change.rename}" if change.path != path else change.rename
    if change.value is DROP:
        return "remove it" if isinstance(key, int) else f"remove {name}"
    if isinstance(key, int):
        return flow(change.value)
    return f"{name}: {flow(change.value)}"


_TEXT = r"[^\n:#\[\]{},&!|>'\"%@`]"
_PLAIN = re.compile(rf"[A-Za-z/](?:{_TEXT}*(?!\s){_TEXT})?|\d[\w./+-]*")
_NOT_TEXT = re.compile(r"true|false|null|[\d][\d_.e+-]*|0x[0-9a-f]+", re.IGNORECASE)


def flow(value: Any) -> str:
    """A value as one line of YAML."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value).items()
        return "{" + ", ".join(f"{flow(key)}: {flow(row)}" for key, row in rows) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, cast("Sequence[Any]", value))) + "]"
    if isinstance(value, str):
        safe = re.sub(r":(?=\S)", "", value)  # a colon ends a key only before a space
        plain = _PLAIN.fullmatch(safe) and not _NOT_TEXT.fullmatch(value)
        return value if plain else json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)
