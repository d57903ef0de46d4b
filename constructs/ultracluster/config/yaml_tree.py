# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""Nodes of one YAML file as trees that know where each part was written, and the merge of two such trees."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ultracluster.config.findings import Location, YamlPath

_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}": kind for kind in ("str", "int", "float", "bool", "null", "merge")}
# YAML 1.2 has no dates: what looks like one is text
_PLAIN_TAGS["tag:yaml.org,2002:timestamp"] = "str"

MOST_VALUES = 100_000
"""Values of a file, those that aliases repeat among them: a few nested aliases make billions."""


class TooMuchError(Exception):
    """Its aliases repeat more than a file can mean."""


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
            self.note("CFG002", "an alias that contains itself.", location, path=path)
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
                inherited += [self.tree(part, path, where) for part in parts]
                continue
            if not isinstance(key_node, ScalarNode):
                self.note("CFG002", "a key that is not a word.", where, path=path)
                continue
            name = str(key_node.value)
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

    def scalar(self, node: Node, path: YamlPath, place: Place) -> Any:
        place.raw = str(node.value)
        kind = _PLAIN_TAGS.get(str(node.tag))
        if kind is None:
            self.note(
                "CFG002",
                f"`{node.value}` has the YAML type {node.tag}, which is not used here.",
                place.value,
                f'"{node.value}"',
                path,
            )
            return None
        if kind == "str" and "${" in place.raw:
            self.note(
                "CFG009",
                "`${...}` is not expanded: what is deployed is what was reviewed.",
                place.value,
                "write the value, or put what differs into a file that `extends:` this one",
                path,
            )
        match kind:
            case "null":
                return None
            case "bool":
                return place.raw.lower() == "true"
            case "int" if len(place.raw) > sys.get_int_max_str_digits() > 0:
                return float("inf")  # Python refuses to read it; it is out of every range
            case "int":
                digits = place.raw.replace("_", "")
                # `0123` is a number in YAML 1.2; int(…, 0) would refuse it
                return int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else int(digits)
            case "float":
                return float(place.raw.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
            case _:
                return place.raw


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
