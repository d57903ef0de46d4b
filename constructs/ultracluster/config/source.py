# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""YAML files as data that knows where each part was written.

ruamel.yaml parses (YAML 1.2: `on` and `no` are words, not booleans) and gives the place of every node; the
merge of an overlay with its base happens on nodes (`yaml_tree`), so that a finding names the file that holds
the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode

from ultracluster.config.findings import Finding, InvalidEnvironmentError, Location, YamlPath
from ultracluster.config.remedy import Remedy
from ultracluster.config.yaml_tree import MOST_VALUES, NodeWalk, Place, TooMuchError, Tree, merged


@dataclass(slots=True)
class Source:
    """The merged data of an environment file and the place of each of its parts."""

    file: str
    data: Any = None
    places: dict[YamlPath, Place] = field(default_factory=dict[YamlPath, Place])
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


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source

    def file(self, path: Path, chain: tuple[Path, ...]) -> Tree:
        empty = Tree({}, Place(Location(str(path), 1, 1), Location(str(path), 1, 1)))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self.note("CFG001", f"{path} does not exist.", Location(str(path), 1, 1), _files_beside(path))
            return empty
        except IsADirectoryError:
            inside = _files_beside(path / "any.yaml")
            self.note("CFG001", f"{path} is a folder.", Location(str(path), 1, 1), inside)
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
            tree = NodeWalk(self.note, str(path), lines).tree(node, (), None)
        except RecursionError:
            return self.too_deep(path)
        except TooMuchError:
            message = f"with its aliases the file comes to more than {MOST_VALUES:,} values."
            self.note("CFG002", message, Location(str(path), 1, 1), "write out what the aliases repeat")
            return empty
        return self.extend(path, tree, (*chain, path.resolve()))

    def too_deep(self, path: Path) -> Tree:
        place = Location(str(path), 1, 1)
        message = "values lie in one another deeper than can be read; an environment has ten levels at most."
        self.note("CFG002", message, place, "look for a bracket that is not closed")
        return Tree({}, Place(place, place))

    def extend(self, path: Path, tree: Tree, chain: tuple[Path, ...]) -> Tree:
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
        return merged(self.file(base, chain), tree)

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


def _record(source: Source, tree: Tree, path: YamlPath) -> Any:
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
