# pyright: basic
# ruamel.yaml gives its nodes and marks no types.
"""YAML files as data that knows where each part was written.

ruamel.yaml parses (YAML 1.2: `on` and `no` are words, not booleans) and gives the place of every node; the
merge of an overlay with its base happens on nodes (`yaml_tree`), so that a finding names the file that holds
the value. Whoever may write an environment may be a stranger (a pull request): what is read is bounded, and
`extends:` leads to environment files of the same folder only (`base_files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node

from ultracluster.config.base_files import Folders, known_keys
from ultracluster.config.file_text import kind_of, real, text_of
from ultracluster.config.findings import Finding, InvalidEnvironmentError, Location, YamlPath
from ultracluster.config.plain_text import TURNING, clipped, named
from ultracluster.config.remedy import Remedy
from ultracluster.config.yaml_bounds import (
    MOST_BYTES,
    MOST_VALUES,
    TooDeepError,
    TooMuchError,
    compose,
    directive_line,
)
from ultracluster.config.yaml_tree import NodeWalk, Place, Tree, merged

MOST_FINDINGS = 100
"""That are told of one file: who has more has one cause for most of them."""
MOST_FILES = 10
"""That extend each other in a row."""
MOST_BASES = 30
"""That are read for one environment: lists of lists would be read without end."""


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
        """The scalar at `path` as it was typed, or its beginning; empty if there is none."""
        place = self.places.get(path)
        return clipped(place.raw) if place else ""


def read(path: Path) -> Source:
    """Read a YAML file and the files it extends.

    Raises:
        InvalidEnvironmentError: a file is missing, empty or not YAML; all that is wrong in it.
    """
    source = Source(str(path))
    tree = Tree({}, Place(Location(str(path), 1, 1), Location(str(path), 1, 1)))
    with suppress(_EnoughError):
        tree = _Reader(source, path).file(path, chain=())
    if source.findings:
        raise InvalidEnvironmentError(source.findings)
    source.data = _record(source, tree, ())
    return source


class _EnoughError(Exception):
    """No more findings are told."""


class _Reader:
    def __init__(self, source: Source, path: Path) -> None:
        self.source = source
        self.bases = 0
        self.folders = Folders.of(path)

    def file(self, path: Path, chain: tuple[Path, ...]) -> Tree:
        """What a file says, with what it extends below it; `chain`: the files that led to it."""
        start = Location(str(path), 1, 1)
        empty = Tree({}, Place(start, start))
        text = self.text(path, start)
        if text is None:
            return empty
        # of a file that is elsewhere, or that another one names, a line may be somebody's secret
        lines = text.splitlines() if not chain and self.folders.hold(path) else []
        try:
            node = compose(text)
        except TooDeepError:
            message = (
                "values lie in one another deeper than can be read; an environment has ten levels at most."
            )
            self.note("CFG002", message, start, "look for a bracket that is not closed")
            return empty
        except TooMuchError:
            self.too_much(start)
            return empty
        except MarkedYAMLError as error:
            self.syntax(path, lines, error)
            return empty
        except YAMLError as error:
            words, line = reason(text, error)
            self.note("CFG002", words, Location(str(path), line, 1), "save it as plain text in UTF-8")
            return empty
        if not isinstance(node, MappingNode):
            what = "is empty" if node is None else "does not hold keys and values"
            place = Location(str(path), 1, 1, lines[0] if lines else "")
            self.note("CFG007", f"the file {what}.", place, "start from environments/dev.yaml")
            return empty
        if chain:
            if not known_keys(node):
                message = f"{path} is no environment file: it has none of the keys of one."
                self.note("CFG008", message, start, "name an environment file")
                return empty
            lines = text.splitlines()
        return self.tree(path, node, lines, chain, empty)

    def tree(self, path: Path, node: Node, lines: list[str], chain: tuple[Path, ...], empty: Tree) -> Tree:
        """The nodes of a file as a tree."""
        try:
            tree = NodeWalk(self.note, str(path), lines).tree(node, (), None)
        except TooMuchError:
            self.too_much(Location(str(path), 1, 1))
            return empty
        if not isinstance(tree.value, dict):  # the whole file is marked as another type, and that is noted
            return empty
        return self.extend(path, tree, (*chain, real(path)))

    def text(self, path: Path, start: Location) -> str | None:
        """What the file says; None where that cannot be told."""
        try:
            text = text_of(path, MOST_BYTES)
        except FileNotFoundError:
            self.note("CFG001", f"{path} does not exist.", start, _files_beside(path))
            return None
        except IsADirectoryError:
            self.note("CFG001", f"{path} is a folder.", start, _files_beside(path / "any.yaml"))
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            self.note(
                "CFG001", f"{clipped(str(path))} cannot be read: {why}.", start, "name an environment file"
            )
            return None
        except UnicodeDecodeError as error:
            message = f"{path} cannot be read: byte {error.start + 1} is not UTF-8."
            self.note("CFG001", message, start, "save it as UTF-8")
            return None
        if turned := TURNING.search(text):
            line = text.count("\n", 0, turned.start()) + 1
            message = (
                f"the character {named(turned[0])} shows what follows it in another order than it is read."
            )
            self.note("CFG002", message, Location(str(path), line, 1), "remove it")
            return None
        if line := directive_line(text):
            message = (
                "a line that begins with % is for the parser; files here are YAML 1.2 without such lines."
            )
            self.note("CFG002", message, Location(str(path), line, 1), "remove the line")
            return None
        return text

    def too_much(self, place: Location) -> None:
        message = f"with its aliases the file comes to more than {MOST_VALUES:,} values, or too much text."
        self.note("CFG002", message, place, "write out what the aliases repeat")

    def extend(self, path: Path, tree: Tree, chain: tuple[Path, ...]) -> Tree:
        extends = tree.value.pop("extends", None)
        if extends is None:
            return tree
        named = extends.value if isinstance(extends.value, list) else [extends]
        if not named or not all(_names_a_file(one.value) for one in named):
            self.note(
                "CFG008",
                "`extends` names one file, or a list of files.",
                extends.place.value,
                "extends: base.yaml",
            )
            return tree
        base: Tree | None = None
        for one in named:
            found = self.base(path.parent / one.value, one.place.value, chain)
            if found is not None:
                base = found if base is None else merged(base, found)
        return tree if base is None else merged(base, tree)

    def base(self, base: Path, place: Location, chain: tuple[Path, ...]) -> Tree | None:
        """What a file that is extended says; None where it may not be, or is not there."""
        if refused := self.folders.refuse(base):
            self.note("CFG008", f"{clipped(str(base))} {refused.why}.", place, refused.instead)
        elif real(base) in chain:
            self.note(
                "CFG008",
                f"{base} is already being read: the files extend each other.",
                place,
                "remove one `extends`",
            )
        elif len(chain) >= MOST_FILES:
            self.note(
                "CFG008", f"{MOST_FILES} files extend each other in a row.", place, "merge some of them"
            )
        elif (kind := kind_of(base)) != "file":
            what = "does not exist" if kind == "none" else "is not a file"
            self.note("CFG008", f"{clipped(str(base))} {what}.", place, _files_beside(base))
        elif self.bases >= MOST_BASES:
            self.note("CFG008", f"more than {MOST_BASES} files are extended.", place, "merge some of them")
        else:
            self.bases += 1
            return self.file(base, chain)
        return None

    def note(
        self, code: str, message: str, location: Location, instead: str = "", path: YamlPath = ()
    ) -> None:
        """The file is not data yet, so what fixes it is given in words."""
        if len(self.source.findings) >= MOST_FINDINGS:
            self.source.findings.append(more_findings(location))
            raise _EnoughError
        remedy = Remedy(note=instead, lacking="action")
        self.source.findings.append(
            Finding(code=code, severity="error", message=message, path=path, remedy=remedy, location=location)
        )

    def syntax(self, path: Path, lines: list[str], error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        text = lines[line] if line < len(lines) else ""
        message = f"not YAML: {clipped(str(error.problem or error))}." if lines else "not YAML from here on."
        instead = "see the YAML at this place" if lines else f"ultracluster validate {path} tells more"
        if error.problem == "but found another document":
            message, instead = "a second YAML document begins here.", "one file for each environment"
        if "\t" in text[: column + 1]:
            message, instead = (
                "a tab character; YAML is indented with spaces.",
                text.replace("\t", "  ").rstrip() or "remove the tab",
            )
        self.note(
            "CFG002", message, Location(str(path), line + 1, column + 1, text.replace("\t", " ")), instead
        )


def _names_a_file(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def reason(text: str, error: YAMLError) -> tuple[str, int]:
    """Why a text is not YAML at all, and the line: nearly always a character that YAML does not allow."""
    at = getattr(error, "position", None)
    if isinstance(at, int) and at < len(text):
        return f"not YAML: it holds {named(text[at])}.", text.count("\n", 0, at) + 1
    return f"not YAML: {clipped(str(error))}", 1


def more_findings(location: Location | None) -> Finding:
    """In the place of all that are not told."""
    return Finding(
        code="CFG010",
        severity="error",
        message=f"more is wrong than these {MOST_FINDINGS} findings; the others are not shown.",
        remedy=Remedy(note="fix these first", lacking="action"),
        location=location,
    )


def _record(source: Source, tree: Tree, path: YamlPath) -> Any:
    source.places[path] = tree.place
    if isinstance(tree.value, dict):
        return {name: _record(source, sub, (*path, name)) for name, sub in tree.value.items()}
    if isinstance(tree.value, list):
        return [_record(source, sub, (*path, index)) for index, sub in enumerate(tree.value)]
    return tree.value


def _files_beside(path: Path) -> str:
    try:
        names = sorted(_environments(path.parent))[:20] if kind_of(path.parent) == "folder" else []
    except OSError:
        names = []
    near = get_close_matches(path.name, names, n=1)
    nearest = f"{path.parent / near[0]}; " if near else ""
    return f"{nearest}{path.parent}/ has {', '.join(names)}" if names else ""


def _environments(folder: Path) -> Iterator[str]:
    return (file.name for file in folder.iterdir() if file.suffix in {".yaml", ".yml"})
