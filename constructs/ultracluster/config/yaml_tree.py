# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""Nodes of one YAML file as trees that know where each part was written, and the merge of two such trees."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Protocol

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ultracluster.config.findings import Location, YamlPath
from ultracluster.config.plain_text import clipped
from ultracluster.config.yaml_bounds import MOST_TEXT, MOST_VALUES, TooMuchError

_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}": kind for kind in ("str", "int", "float", "bool", "null", "merge")}
# YAML 1.2 has no dates: what looks like one is text
_PLAIN_TAGS["tag:yaml.org,2002:timestamp"] = "str"
_FOLDED = {"tag:yaml.org,2002:map": MappingNode, "tag:yaml.org,2002:seq": SequenceNode}
_INTEGER = re.compile(r"([-+]?)(?:0x([0-9a-f]+)|0o([0-7]+)|0b([01]+)|([0-9]+))", re.IGNORECASE)
_MOST_DIGITS = 40
"""Of a number; CloudFormation and JSON take far less, and Python refuses to print the longest."""
_MOST_INTEGER = 2**63


@dataclass(slots=True)
class Place:
    """Where a value and its key stand."""

    key: Location
    value: Location
    raw: str = ""
    """A scalar as it was typed."""


@dataclass(slots=True)
class Tree:
    """A node with its place: `value` is a dict of trees, a list of trees or a scalar."""

    value: Any
    place: Place


class Note(Protocol):
    """Takes what is wrong with the text of a file."""

    def __call__(
        self, code: str, message: str, location: Location, instead: str = "", path: YamlPath = ()
    ) -> None: ...


class NodeWalk:
    """Turns the nodes of one file into trees."""

    def __init__(self, note: Note, file: str, lines: list[str]) -> None:
        self.note = note
        self.file = file
        self.lines = lines
        self.open: list[Node] = []
        self.values = 0
        self.length = 0

    def location(self, node: Node) -> Location:
        line, column = node.start_mark.line, node.start_mark.column
        text = self.lines[line] if line < len(self.lines) else ""
        end = node.end_mark.column if node.end_mark.line == line else len(text.rstrip())
        length = end - column if isinstance(node, ScalarNode) else 1
        return Location(self.file, line + 1, column + 1, text, max(1, length))

    def tree(self, node: Node, path: YamlPath, key: Location | None) -> Tree:
        location = self.location(node)
        place = Place(key or location, location)
        self.values += 1
        if self.values > MOST_VALUES:
            raise TooMuchError
        if node in self.open:
            self.note(
                "CFG002", "an alias that contains itself.", location, "write out what it stands for", path
            )
            return Tree(None, place)
        if not isinstance(node, ScalarNode) and not isinstance(node, _FOLDED.get(str(node.tag), ())):
            self.note("CFG002", f"the YAML type {node.tag} is not used here.", location, "remove it", path)
            return Tree(None, place)
        self.open.append(node)
        try:
            if isinstance(node, MappingNode):
                return Tree(self.mapping(node, path), place)
            if isinstance(node, SequenceNode):
                items = [self.tree(item, (*path, index), None) for index, item in enumerate(node.value)]
                return Tree(items, place)
            return Tree(self.scalar(node, path, place), place)
        finally:
            self.open.pop()

    def mapping(self, node: MappingNode, path: YamlPath) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        inherited: list[Tree] = []
        for key_node, value_node in node.value:
            where = self.location(key_node)
            if str(key_node.tag) == "tag:yaml.org,2002:merge":
                parts = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                for part in parts:
                    tree = self.tree(part, path, where)
                    if isinstance(part, MappingNode):
                        inherited.append(tree)
                    else:
                        message = "`<<` takes keys and values from an alias, and this is none of a mapping."
                        self.note("CFG002", message, self.location(part), "<<: *name", path)
                continue
            if not isinstance(key_node, ScalarNode):
                self.note("CFG002", "a key that is not a word.", where, "write a word before the colon", path)
                continue
            name = self.measured(str(key_node.value))
            if not path and name.startswith("."):
                continue  # a place for YAML anchors, e.g. `.defaults: &defaults`
            if name in result:
                first = result[name].place.key.line
                self.note(
                    "CFG003",
                    f"`{name}` stands twice here; the first is in line {first}.",
                    where,
                    "keep one of the two",
                    (*path, name),
                )
                continue
            result[name] = self.tree(value_node, (*path, name), where)
        for tree in inherited:
            if isinstance(tree.value, dict):
                result = {**tree.value, **result}
        return result

    def measured(self, text: str) -> str:
        """A text, which counts."""
        self.length += len(text)
        if self.length > MOST_TEXT:
            raise TooMuchError
        return text

    def scalar(self, node: Node, path: YamlPath, place: Place) -> Any:
        place.raw = raw = self.measured(str(node.value))
        kind = _PLAIN_TAGS.get(str(node.tag))
        if kind is None:
            self.note(
                "CFG002",
                f"`{clipped(raw)}` has the YAML type {clipped(str(node.tag))}, which is not used here.",
                place.value,
                f'"{clipped(raw)}"',
                path,
            )
            return None
        if kind in ("str", "merge"):
            return self.text(raw, path, place)
        try:
            return _VALUES[kind](raw)
        except _WrongScalarError as error:
            instead = "write a value of the type, or a text in quotes"
            self.note(error.code, f"`{clipped(raw, 60)}` {error}.", place.value, instead, path)
            return None

    def text(self, raw: str, path: YamlPath, place: Place) -> str:
        if "${" in raw:
            self.note(
                "CFG009",
                "`${...}` is not expanded: what is deployed is what was reviewed.",
                place.value,
                "write the value, or put what differs into a file that `extends:` this one",
                path,
            )
        return raw


class _WrongScalarError(Exception):
    """A scalar that does not say what its type says, with the code of the finding."""

    def __init__(self, why: str, code: str = "CFG002") -> None:
        super().__init__(why)
        self.code = code


def _null(raw: str) -> None:
    if raw.lower() not in ("", "~", "null"):
        raise _WrongScalarError("is marked as null and holds something")


def _boolean(raw: str) -> bool:
    if raw.lower() not in ("true", "false"):
        raise _WrongScalarError("is marked as a boolean and is neither true nor false")
    return raw.lower() == "true"


def _integer(raw: str) -> int:
    digits = raw.replace("_", "")
    if len(digits) > _MOST_DIGITS:
        raise _WrongScalarError("is too great: a whole number is needed that a field can take", "CFG005")
    found = _INTEGER.fullmatch(digits) if digits.isascii() else None
    if found is None:
        raise _WrongScalarError("is marked as a whole number and is none")
    sign, hexadecimal, octal, binary, decimal = found.groups()
    for text, base in ((hexadecimal, 16), (octal, 8), (binary, 2), (decimal, 10)):
        if text is not None:  # `0123` is decimal in YAML 1.2
            number = int(text, base)
            break
    else:  # pragma: no cover - one of the groups matched
        raise AssertionError
    if number >= _MOST_INTEGER:
        raise _WrongScalarError("is too great: a whole number is needed that a field can take", "CFG005")
    return -number if sign == "-" else number


def _real(raw: str) -> float:
    try:
        number = float(raw.replace("_", "")) if raw.isascii() and len(raw) <= _MOST_DIGITS else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _WrongScalarError("is no number that a field can take", "CFG005")
    return number


_VALUES = {"null": _null, "bool": _boolean, "int": _integer, "float": _real}


def merged(base: Tree, over: Tree) -> Tree:
    """Mappings merge key by key; anything else is replaced; `key: null` removes the base's key."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    value: dict[str, Tree] = dict(base.value)
    for name, tree in over.value.items():
        if tree.value is None and name in value:
            del value[name]
        elif name in value:
            value[name] = merged(value[name], tree)
        else:
            value[name] = tree
    return Tree(value, over.place)
