"""What is read from a file of another tool, key by key: what nobody reads is told, so that nothing gets lost
unseen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ultracluster.config.plain_text import clipped, one_line

Outcome = Literal["left out", "changed", "assumed"]
"""`left out`: the environment has nothing of it. `changed`: it has something else. `assumed`: the file does
not say it, and an environment has to."""
Reason = tuple[str, str]
"""Why a key does not carry over, and what to do."""

SILENT: Reason = ("", "")
"""Of a key that says what a running cluster was doing, or repeats another: nothing is lost without it."""
_PLACEHOLDER = re.compile(r"\$\{|\{\{|<%|PLACEHOLDER")
"""What programs fill in: envsubst and Terraform, Jinja and Go's templates."""
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
OTHER: Reason = ("Ultracluster has no such setting", "look up what it does, and whether you need it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that is not in the environment as it is in the file."""

    outcome: Outcome
    where: str
    """Place in the file, `HeadNode.Iam`; of what is assumed or put right, the place in the environment."""
    why: str
    todo: str
    first: bool = False
    """Data is lost where nobody reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One reason for which there can be no environment."""

    where: str
    message: str
    instead: str


class ImportRefusedError(Exception):
    """Nothing can be made of it; carries every reason, not only the first."""

    def __init__(self, wrong: Sequence[Wrong]) -> None:
        self.wrong = tuple(wrong)
        super().__init__(
            "\n".join(
                f"{one_line(one.where)}: {one.message}" + (f"; instead: {one.instead}" if one.instead else "")
                for one in wrong
            )
        )


@dataclass
class Ledger:
    """What became of each key of a file."""

    reasons: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """Why known keys do not carry over, by the end of their path without numbers: `Ssh.KeyName`; or for all
    that is below a key and not named by itself: `vpc.*`."""
    levels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys that stand at one place only -> what they belong below."""
    rows: list[Row] = field(default_factory=list[Row])
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    parts: list[Part] = field(default_factory=list["Part"])

    def part(self, data: object, where: str = "") -> Part:
        """The whole of a file, or a mapping within it."""
        if not isinstance(data, Mapping):
            self.refuse(where or "the file", "must hold keys and values", "see the tool's own documentation")
            data = {}
        found = Part(cast("Mapping[str, Any]", data), where, self)
        self.parts.append(found)
        return found

    def left(self, where: str, why: str, todo: str, *, first: bool = False) -> None:
        """Something that the environment has nothing of; `first` is read before all others."""
        self.rows.append(Row(outcome="left out", where=where, why=why, todo=todo, first=first))

    def changed(self, where: str, why: str, todo: str) -> None:
        """Something that the environment has otherwise."""
        self.rows.append(Row(outcome="changed", where=where, why=why, todo=todo))

    def assumed(self, where: str, why: str, todo: str) -> None:
        """Something that the file does not say."""
        self.rows.append(Row(outcome="assumed", where=where, why=why, todo=todo))

    def renamed(self, where: str, theirs: str | None, name: str) -> None:
        """The name of a cluster, where the environment has another one."""
        if theirs and theirs != name:
            self.changed(
                where, f"it was {clipped(one_line(theirs))}, and the environment is {name}",
                "stacks and cluster have the environment's name: pass --name for another",
            )  # fmt: skip

    def refuse(self, where: str, message: str, instead: str = "") -> None:
        """Something without which, or with which, there can be no environment."""
        self.wrong.append(Wrong(where=where, message=message, instead=instead))

    def enough(self) -> None:
        """
        Raises:
            ImportRefusedError: something was refused so far.
        """
        for part in self.parts:
            for key in part.unread():
                if (above := self.levels.get(key)) and not plain(part.where).endswith(above):
                    stands = f"stands below {part.where}" if part.where else "stands at the top"
                    self.refuse(
                        part.place(key), f"{stands}, and belongs below {above}", f"move it to {above}.{key}"
                    )
        if self.wrong:
            raise ImportRefusedError(self.wrong)

    def close(self) -> tuple[Row, ...]:
        """All rows, with one for each key that nobody has read.

        Raises:
            ImportRefusedError: something was refused.
        """
        self.enough()
        for part in self.parts:
            for key in part.unread():
                self._unread(part.place(key), part.data[key])
        return tuple(sorted(self.rows, key=lambda row: (not row.first, _ORDER.index(row.outcome))))

    def reason_of(self, place: str) -> Reason | None:
        """Return why what stands at a place does not carry over; None where nobody has said it."""
        names = plain(place).split(".")
        ends = [".".join(names[start:]) for start in range(len(names))]
        ends += [f"{name}.*" for name in reversed(names[:-1])]
        return next((self.reasons[end] for end in ends if end in self.reasons), None)

    def _unread(self, place: str, value: object) -> None:
        """A row for what nobody has read, or for each key of it where only these are known."""
        if value in ("", [], {}):
            return  # says as much as no key
        reason = self.reason_of(place)
        if reason is None and isinstance(value, Mapping) and value and place.count(".") < _DEEPEST:
            for key, one in cast("Mapping[Any, Any]", value).items():
                self._unread(f"{place}.{shown(str(key))}", one)
            return
        if reason != SILENT:
            self.left(place, *(reason or OTHER))


_DEEPEST = 8
"""Levels at which keys get rows of their own."""
_ORDER: tuple[Outcome, ...] = ("left out", "changed", "assumed")


class Part:
    """A mapping of somebody's file. Each key that is asked for counts as read."""

    def __init__(self, data: Mapping[str, Any], where: str, ledger: Ledger) -> None:
        # a key without a value says as much as no key
        self.data = {str(key): value for key, value in data.items() if value is not None}
        self.where = where
        self.ledger = ledger
        self._read: set[str] = set()
        self._below: dict[str, list[Part]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def __bool__(self) -> bool:
        return bool(self.data)

    def place(self, key: str) -> str:
        """Return where a key stands in the file."""
        return f"{self.where}.{shown(key)}" if self.where else shown(key)

    def unread(self) -> list[str]:
        """Keys that nobody has asked for."""
        return [key for key in self.data if key not in self._read]

    def any(self, key: str) -> Any:
        """A value of whatever kind; None where there is none."""
        self._read.add(key)
        return self.data.get(key)

    def text(self, key: str) -> str | None:
        """A text; a number is its digits."""
        value = self.any(key)
        if isinstance(value, str) and _PLACEHOLDER.search(value):
            return self._not(key, "a text")
        if value is None or isinstance(value, str):
            return value.strip() or None if value else None
        if isinstance(value, bool | Mapping | list):
            return self._not(key, "a text")
        return str(value)

    def needed(self, key: str, instead: str) -> str:
        """A text without which there can be no environment."""
        value = self.text(key)
        if value is None and not isinstance(self.data.get(key), bool | Mapping | list):
            self.ledger.refuse(self.place(key), "is missing", instead)
        return value or ""

    def number(self, key: str) -> int | None:
        """A whole number; its digits as a text are one, too."""
        value = self.any(key)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,11}\s*", value):
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        return self._not(key, "a whole number")

    def flag(self, key: str) -> bool | None:
        """Yes or no, as YAML of any version writes it."""
        value = self.any(key)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).lower() if isinstance(value, str | int) else ""
        if word in (*_YES, *_NO):
            return word in _YES
        return self._not(key, "true or false")

    def part(self, key: str) -> Part:
        """A mapping below; an empty one where there is none."""
        value = self.any(key)
        if key not in self._below:
            self._below[key] = [self.ledger.part({} if value is None else value, self.place(key))]
        return self._below[key][0]

    def parts(self, key: str) -> list[Part]:
        """A list of mappings; empty where there is none."""
        if key not in self._below:
            places = ((f"{self.place(key)}[{number}]", one) for number, one in enumerate(self._list(key)))
            self._below[key] = [self.ledger.part(one, place) for place, one in places]
        return self._below[key]

    def texts(self, key: str) -> list[str]:
        """A list of texts; one text is a list of it."""
        found: list[Any] = [self.any(key)] if isinstance(self.data.get(key), str) else self._list(key)
        if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in found):
            self._not(key, "a list of texts")
            return []
        return [str(one) for one in found]

    def map(self, key: str) -> dict[str, Any]:
        """A mapping whose keys are the user's own, all of them read."""
        value = self.any(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._not(key, "keys and values")
            return {}
        return {str(name): one for name, one in cast("Mapping[Any, Any]", value).items()}

    def map_all(self) -> dict[str, Any]:
        """The whole mapping, whose keys are the user's own."""
        self._read.update(self.data)
        return dict(self.data)

    def leave(self, key: str, why: str, todo: str) -> None:
        """The key does not carry over, for this reason; nothing where the file does not have it."""
        if self.any(key) is not None:
            self.ledger.left(self.place(key), why, todo)

    def _list(self, key: str) -> list[Any]:
        value = self.any(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._not(key, "a list")
            return []
        return cast("list[Any]", value)

    def _not(self, key: str, what: str) -> None:
        """The value is of another kind than the tool itself takes."""
        value = self.data.get(key)
        if isinstance(value, str) and _PLACEHOLDER.search(value):
            words = f"is the placeholder {shown(value)}"
            self.ledger.refuse(self.place(key), words, "fill it in first, e.g. with envsubst")
            return
        self.ledger.refuse(self.place(key), f"is not {what}", "correct it as the tool's documentation says")


def shown(key: str) -> str:
    """Somebody's key in a path."""
    return clipped(one_line(key), 60)


def plain(place: str) -> str:
    """A path without the numbers of lists."""
    return "".join(part.partition("]")[2] if number else part for number, part in enumerate(place.split("[")))
