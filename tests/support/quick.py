"""Which test files `pytest --quick` leaves out: told from what they import, so that nobody keeps a list."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.abc import MetaPathFinder
from pathlib import Path

CDK = frozenset({"aws_cdk", "cdk_nag", "constructs", "jsii"})
"""Whoever imports one of these, and be it through a module of ours, starts a Node process first."""
OUTSIDE = frozenset({"subprocess", "moto", "pty"})
"""What a test that reaches outside of its own process imports, or a module that only tests use."""


class NoCdk(MetaPathFinder):
    """Refuses the CDK to a quick run: a file that needs it was not told apart."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname.partition(".")[0] in CDK:
            raise ImportError(f"a quick test needs `{fullname}`: tests/support/quick.py did not expect it")


def no_process(event: str, _: object) -> None:
    """For `sys.addaudithook`: refuses processes and servers to a test of a quick run."""
    if event in ("subprocess.Popen", "socket.bind") and "PYTEST_CURRENT_TEST" in os.environ:
        raise RuntimeError(f"a quick test needs {event}: tests/support/quick.py did not expect it")


def guard() -> None:
    """Makes a quick run fail where it does what it is not for."""
    sys.meta_path.insert(0, NoCdk())
    sys.addaudithook(no_process)


class Imports:
    """What files of this repository import, read and not run."""

    def __init__(self, root: Path) -> None:
        self._tests = root / "tests"
        self._roots = (root / "constructs", root, self._tests / "support")
        self._files: dict[Path, _File] = {}
        self._slow: dict[Path, bool] = {}

    def slow(self, path: Path) -> bool:
        """Whether a quick run leaves the file out."""
        return self._reaches(path, frozenset()) or any(self._heavy(name, path) for name in self._lent(path))

    def _reaches(self, path: Path, above: frozenset[Path]) -> bool:
        if path not in self._slow and path not in above:
            names = self._file(path).imports if self._of_tests(path) else self._file(path).at_start
            self._slow[path] = any(self._heavy(name, path, above | {path}) for name in names)
        return self._slow.get(path, False)

    def _heavy(self, name: str, asker: Path, above: frozenset[Path] = frozenset()) -> bool:
        top = name.partition(".")[0]
        if top in CDK or (top in OUTSIDE and self._of_tests(asker)):
            return True
        return any(self._reaches(file, above) for file in self._found(name, asker))

    def _found(self, name: str, asker: Path) -> Iterator[Path]:
        """Files that run when this is imported; the last part may be a name in a module."""
        if name.startswith("ultracluster.stacks"):  # they lie in the folder `stacks` of the checkout
            yield from self._found(name.removeprefix("ultracluster."), asker)
        parts = name.split(".")
        for root in (*self._roots, asker.parent):
            for length in range(1, len(parts) + 1):
                place = root.joinpath(*parts[:length])
                for file in (place.with_suffix(".py"), place / "__init__.py"):
                    if file.is_file():
                        yield file
                        if length == len(parts) - 1 and (home := self._file(file).lazy.get(parts[-1])):
                            yield from self._found(home, file)

    def _lent(self, path: Path) -> Iterator[str]:
        """What the fixtures that the file names import."""
        for conftest in self._conftests(path):
            for fixture, names in conftest.fixtures.items():
                if self._file(path).names(fixture):
                    yield from names

    def _conftests(self, path: Path) -> Iterator[_File]:
        for folder in path.parents:
            if (file := folder / "conftest.py").is_file():
                yield self._file(file)
                for name in self._file(file).at_start:
                    yield from (self._file(one) for one in self._found(name, file) if self._of_tests(one))
            if folder == self._tests:
                return

    def _of_tests(self, path: Path) -> bool:
        return path.is_relative_to(self._tests)

    def _file(self, path: Path) -> _File:
        if path not in self._files:
            self._files[path] = _File(path)
        return self._files[path]


class _File:
    """The text of one file. Imports are found by pattern: to parse all files would take many seconds."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def imports(self) -> set[str]:
        """Of the whole file, functions included."""
        return set(_names(self.text, r"[ \t]*"))

    @cached_property
    def at_start(self) -> set[str]:
        """Of what runs when the file is imported: neither functions nor what is for the type checker."""
        return set(_names(self.text, ""))

    @cached_property
    def lazy(self) -> dict[str, str]:
        """Full name by name of what a package imports for the type checker: it looks them up when asked."""
        return {name.rpartition(".")[2]: name for name in _names(self.text, "[ \t]+")}

    @cached_property
    def fixtures(self) -> dict[str, set[str]]:
        """What the functions of a conftest.py may use of its imports, by their names."""
        parts = re.split(r"^def (\w+)", self.text, flags=re.MULTILINE)[1:]
        bodies = dict(zip(parts[::2], parts[1::2], strict=True))

        def imports(name: str, above: frozenset[str]) -> set[str]:
            """Of a function, and of those of the file that it names: helpers and other fixtures."""
            near = (bodies.keys() & set(re.findall(r"\w+", bodies[name]))) - above
            own = set(_names(bodies[name], "[ \t]+"))
            return own.union(*(imports(one, above | {one}) for one in near))

        return {name: self.at_start | imports(name, frozenset({name})) for name in bodies}

    def names(self, word: str) -> bool:
        return re.search(rf"\b{word}\b", self.text) is not None


def _names(text: str, indent: str) -> Iterator[str]:
    """Full names that import statements with this indent bring."""
    pattern = rf"^{indent}(?:from (\S+) )?import (\([^)]*\)|[^\n#;]*)"
    for module, names in re.findall(pattern, text, re.MULTILINE):
        for one in re.sub(r"#[^\n]*", "", names).strip("()").split(","):
            if word := one.split()[:1]:
                yield f"{module}.{word[0]}" if module else word[0]
