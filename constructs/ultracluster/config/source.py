# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""YAML files as data that knows where each part was written.

ruamel.yaml parses (YAML 1.2: `on` and `no` are words, not booleans) and gives the place of every node; the
merge of an overlay with its base happens here, on nodes, so that a finding names the file that holds
the value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ultracluster.config.findings import Finding, InvalidEnvironmentError, Location, YamlPath
from ultracluster.config.remedy import Remedy

_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}": kind for kind in ("str", "int", "float", "bool", "null", "merge")}
# YAML 1.2 has no dates: what looks like one is text
_PLAIN_TAGS["tag:yaml.org,2002:timestamp"] = "str"

MOST_VALUES = 100_000
"""Values of a file, those that aliases repeat among them: a few nested aliases make billions."""


class _TooMuchError(Exception):
    """Its aliases repeat more than a file can mean."""


@dataclass(slots=True)
class _Place:
    key: Location
    value: Location
    raw: str = ""


@dataclass(slots=True)
class Source:
    """The merged data of an environment file and the place of each of its parts."""

    file: str
    data: Any = None
    places: dict[YamlPath, _Place] = field(default_factory=dict[YamlPath, _Place])
    findings: list[Finding] = field(default_factory=list[Finding])

    def locate(self, path: YamlPath, *, key: bool = False) -> Location:
        """Where `path` stands, or its nearest known parent; `key` points at the name, not the value."""
        for length in range(len(path), 0, -1):
            if place := self.places.get(path[:length]):
                return place.key if key or length < len(path) else place.value
        return Location(self.file, 1, 1)

    def raw(self, path: YamlPath) -> str:
        """The scalar at `path` as it was typed; empty if there is none."""
        place = self.places.get(path)
        return place.raw if place else ""


def read(path: Path) -> Source:
    """Read a YAML file and the files it extends.

    Raises:
        InvalidEnvironmentError: a file is missing, empty or not YAML; all that is wrong in it.
    """
    source = Source(str(path))
    tree = _Reader(source).file(path, chain=())
    if source.findings:
        raise InvalidEnvironmentError(source.findings)
    source.data = _record(source, tree, ())
    return source


@dataclass(slots=True)
class _Tree:
    """A node with its place: `value` is a dict of trees, a list of trees or a scalar."""

    value: Any
    place: _Place


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source

    def file(self, path: Path, chain: tuple[Path, ...]) -> _Tree:
        empty = _Tree({}, _Place(Location(str(path), 1, 1), Location(str(path), 1, 1)))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self.note("CFG001", f"{path} does not exist.", Location(str(path), 1, 1), _files_beside(path))
            return empty
        except OSError as error:
            self.note("CFG001", f"{path} cannot be read: {error}.", Location(str(path), 1, 1))
            return empty
        except UnicodeDecodeError as error:
            message = f"{path} cannot be read: byte {error.start + 1} is not UTF-8."
            self.note("CFG001", message, Location(str(path), 1, 1), "save it as UTF-8")
            return empty
        lines = text.splitlines()
        try:
            node = YAML(typ="safe", pure=True).compose(text)
        except MarkedYAMLError as error:
            self.syntax(path, lines, error)
            return empty
        except YAMLError as error:
            self.note("CFG002", f"not YAML: {error}", Location(str(path), 1, 1))
            return empty
        except RecursionError:
            return self.too_deep(path)
        if not isinstance(node, MappingNode):
            what = "is empty" if node is None else "does not hold keys and values"
            self.note(
                "CFG007",
                f"the file {what}.",
                Location(str(path), 1, 1, lines[0] if lines else ""),
                "start from environments/dev.yaml",
            )
            return empty
        try:
            tree = _NodeWalk(self, str(path), lines).tree(node, (), None)
        except RecursionError:
            return self.too_deep(path)
        except _TooMuchError:
            message = f"with its aliases the file comes to more than {MOST_VALUES:,} values."
            self.note("CFG002", message, Location(str(path), 1, 1), "write out what the aliases repeat")
            return empty
        return self.extend(path, tree, (*chain, path.resolve()))

    def too_deep(self, path: Path) -> _Tree:
        place = Location(str(path), 1, 1)
        message = "values lie in one another deeper than can be read; an environment has ten levels at most."
        self.note("CFG002", message, place, "look for a bracket that is not closed")
        return _Tree({}, _Place(place, place))

    def extend(self, path: Path, tree: _Tree, chain: tuple[Path, ...]) -> _Tree:
        extends = tree.value.pop("extends", None)
        if extends is None:
            return tree
        if not isinstance(extends.value, str) or not extends.value:
            self.note("CFG008", "`extends` names one file.", extends.place.value, "extends: base.yaml")
            return tree
        base = path.parent / extends.value
        if base.resolve() in chain:
            self.note(
                "CFG008", f"{base} is already being read: the files extend each other.", extends.place.value
            )
            return tree
        if not base.is_file():
            what = "is not a file" if base.exists() else "does not exist"
            self.note("CFG008", f"{base} {what}.", extends.place.value, _files_beside(base))
            return tree
        return _merged(self.file(base, chain), tree)

    def note(
        self, code: str, message: str, location: Location, instead: str = "", path: YamlPath = ()
    ) -> None:
        """The file is not data yet, so what fixes it is given in words."""
        remedy = Remedy(note=instead, lacking="action")
        self.source.findings.append(
            Finding(code=code, severity="error", message=message, path=path, remedy=remedy, location=location)
        )

    def syntax(self, path: Path, lines: list[str], error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        text = lines[line] if line < len(lines) else ""
        message = f"not YAML: {error.problem or error}."
        instead = ""
        if error.problem == "but found another document":
            message, instead = "a second YAML document begins here.", "one file for each environment"
        if "\t" in text[: column + 1]:
            message, instead = (
                "a tab character; YAML is indented with spaces.",
                text.replace("\t", "  ").rstrip(),
            )
        self.note(
            "CFG002", message, Location(str(path), line + 1, column + 1, text.replace("\t", " ")), instead
        )


class _NodeWalk:
    """Turns the nodes of one file into trees."""

    def __init__(self, reader: _Reader, file: str, lines: list[str]) -> None:
        self.reader = reader
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

    def tree(self, node: Node, path: YamlPath, key: Location | None) -> _Tree:
        location = self.location(node)
        place = _Place(key or location, location)
        self.values += 1
        if self.values > MOST_VALUES:
            raise _TooMuchError
        if node in self.open:
            self.reader.note("CFG002", "an alias that contains itself.", location, path=path)
            return _Tree(None, place)
        self.open.append(node)
        try:
            if isinstance(node, MappingNode):
                return _Tree(self.mapping(node, path), place)
            if isinstance(node, SequenceNode):
                items = [self.tree(item, (*path, index), None) for index, item in enumerate(node.value)]
                return _Tree(items, place)
            return _Tree(self.scalar(node, path, place), place)
        finally:
            self.open.pop()

    def mapping(self, node: MappingNode, path: YamlPath) -> dict[str, _Tree]:
        result: dict[str, _Tree] = {}
        inherited: list[_Tree] = []
        for key_node, value_node in node.value:
            where = self.location(key_node)
            if str(key_node.tag) == "tag:yaml.org,2002:merge":
                parts = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                inherited += [self.tree(part, path, where) for part in parts]
                continue
            if not isinstance(key_node, ScalarNode):
                self.reader.note("CFG002", "a key that is not a word.", where, path=path)
                continue
            name = str(key_node.value)
            if not path and name.startswith("."):
                continue  # a place for YAML anchors, e.g. `.defaults: &defaults`
            if name in result:
                first = result[name].place.key.line
                self.reader.note(
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

    def scalar(self, node: Node, path: YamlPath, place: _Place) -> Any:
        place.raw = str(node.value)
        kind = _PLAIN_TAGS.get(str(node.tag))
        if kind is None:
            self.reader.note(
                "CFG002",
                f"`{node.value}` has the YAML type {node.tag}, which is not used here.",
                place.value,
                f'"{node.value}"',
                path,
            )
            return None
        if kind == "str" and "${" in place.raw:
            self.reader.note(
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


def _merged(base: _Tree, over: _Tree) -> _Tree:
    """Mappings merge key by key; anything else is replaced; `key: null` removes the base's key."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    value: dict[str, _Tree] = dict(base.value)
    for name, tree in over.value.items():
        if tree.value is None and name in value:
            del value[name]
        elif name in value:
            value[name] = _merged(value[name], tree)
        else:
            value[name] = tree
    return _Tree(value, over.place)


def _record(source: Source, tree: _Tree, path: YamlPath) -> Any:
    source.places[path] = tree.place
    if isinstance(tree.value, dict):
        return {name: _record(source, sub, (*path, name)) for name, sub in tree.value.items()}
    if isinstance(tree.value, list):
        return [_record(source, sub, (*path, index)) for index, sub in enumerate(tree.value)]
    return tree.value


def _files_beside(path: Path) -> str:
    names = sorted(_environments(path.parent)) if path.parent.is_dir() else []
    return f"{path.parent}/ has {', '.join(names)}" if names else ""


def _environments(folder: Path) -> Iterator[str]:
    return (file.name for file in folder.iterdir() if file.suffix in {".yaml", ".yml"})
