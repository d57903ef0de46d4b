"""Which packages an installation takes: the named ones and what they depend on, from some repositories.

One resolver for both formats. It is no SAT solver: conflicts are left to the package manager on the node,
which gets every package that it can need. A name may be there in several versions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cmp_to_key

Compare = Callable[[str, str], int]
"""Below, at or above zero, as the first version is older, the same or newer."""


class ClosureError(Exception):
    """A package or a dependency that no repository has; the message names it."""


@dataclass(frozen=True, slots=True)
class Need:
    """One alternative of a dependency."""

    name: str
    operator: str = ""
    """`<`, `<=`, `=`, `>=`, `>`; empty if any version will do."""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.operator} {self.version})" if self.operator else self.name


@dataclass(frozen=True, slots=True)
class Package:
    """One package file of a repository."""

    name: str
    version: str
    url: str
    size: int
    sha256: str
    repository: str
    """Address of its repository."""
    needs: tuple[tuple[Need, ...], ...]
    """Dependencies, each with its alternatives, the preferred one first."""
    provides: tuple[tuple[str, str], ...]
    """Other names that it answers to, with a version or an empty one."""
    record: str = field(repr=False)
    """Its entry in the index of the repository, as it stands there."""
    specs: tuple[str, ...] = ()
    """What it can be asked for by, besides its name."""


@dataclass(slots=True)
class Index:
    """Packages by name and by what they provide; entries are parsed when they are asked for."""

    compare: Compare
    strict: bool
    """Whether a dependency that is in no repository is an error; else the node's own repositories have it."""
    _named: dict[str, list[Callable[[], Package]]] = field(default_factory=lambda: defaultdict(list))
    _provided: dict[str, list[Callable[[], Package]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, provides: Iterable[str], make: Callable[[], Package]) -> None:
        """One entry; `make` parses it."""
        once = cache(make)
        self._named[name].append(once)
        for virtual in provides:
            self._provided[virtual].append(once)

    def named(self, name: str) -> list[Package]:
        """Newest first; of equal ones, the one that was added first."""
        packages = [make() for make in self._named.get(name, ())]
        return sorted(packages, key=cmp_to_key(lambda a, b: self.compare(b.version, a.version)))

    def matching(self, spec: str, repository: str | None) -> list[Package]:
        """The newest of each name that `spec` stands for: a name, a name with a version, a pattern of names.

        Args:
            repository: only from the repository at this address.
        """
        name = spec.partition("=")[0]
        names = [name] if name in self._named else [each for each in self._named if fnmatchcase(each, name)]
        if not names:  # dnf writes the version behind a dash
            names = [each for each in self._named if name.startswith(f"{each}-")]
        result: list[Package] = []
        for each in sorted(names):
            fits = [
                candidate
                for candidate in self.named(each)
                if repository in (None, candidate.repository)
                and matches(candidate.name, candidate.specs, spec)
            ]
            result.extend(fits[:1])
        return result

    def answering(self, need: Need) -> Iterator[Package]:
        """What satisfies `need`: packages of this name, newest first, then those that provide it."""
        for package in self.named(need.name):
            if self.holds(package.version, need):
                yield package
        # the order of the providers must not depend on the order of the index
        for package in sorted({make() for make in self._provided.get(need.name, ())}, key=_by_name):
            if package.name != need.name and self.provides(package, need):
                yield package

    def provides(self, package: Package, need: Need) -> bool:
        """Whether a package is, or provides, what is needed."""
        if package.name == need.name and self.holds(package.version, need):
            return True
        return any(
            name == need.name and (not need.operator or (version != "" and self.holds(version, need)))
            for name, version in package.provides
        )

    def holds(self, version: str, need: Need) -> bool:
        """Whether this version satisfies the constraint."""
        if not need.operator:
            return True
        order = self.compare(version, need.version)
        return {"<": order < 0, "<=": order <= 0, "=": order == 0, ">=": order >= 0, ">": order > 0}[
            need.operator
        ]


def _by_name(package: Package) -> tuple[str, str, str]:
    return package.name, package.version, package.url


def matches(name: str, specs: Collection[str], package_name: str) -> bool:
    """Return whether a package is one that `package_name` asks for, a name or pattern of name and version."""
    return any(fnmatchcase(spec, package_name) for spec in (name, *specs))


@dataclass(slots=True)
class Closure:
    """Packages with the ones that each needs, besides what the image has."""

    index: Index
    image: list[Package] = field(default_factory=list[Package])
    """Packages of every image."""
    image_names: tuple[str, ...] = ()
    """Patterns of names that only the image brings, as its kernel."""
    chosen: dict[Package, list[Package]] = field(default_factory=dict[Package, list[Package]])
    _by_name: dict[str, list[Package]] = field(default_factory=lambda: defaultdict(list))
    _image: dict[str, list[Package]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for package in self.image:
            _register(self._image, package)

    def add(self, *packages: Package) -> None:
        """Take these and all that they need.

        Raises:
            ClosureError: a dependency is nowhere; nothing was then taken.
        """
        before = len(self.chosen)
        # all of them first: what was asked for is preferred to what only fits
        waiting = [package for package in packages if self._take(package)]
        try:
            while waiting:
                package = waiting.pop()
                for group in package.needs:
                    chosen = self._satisfy(package, group)
                    if chosen is None:
                        continue
                    if self._take(chosen):
                        waiting.append(chosen)
                    if chosen not in self.chosen[package]:
                        self.chosen[package].append(chosen)
        except ClosureError:
            for package in list(self.chosen)[before:]:
                del self.chosen[package]
                for entries in self._by_name.values():
                    if package in entries:
                        entries.remove(package)
            raise

    def _take(self, package: Package) -> bool:
        if package in self.chosen:
            return False
        self.chosen[package] = []
        _register(self._by_name, package)
        return True

    def _satisfy(self, package: Package, group: tuple[Need, ...]) -> Package | None:
        """The package that meets a dependency; None if the image does."""
        for need in group:
            if any(fnmatchcase(need.name, pattern) for pattern in self.image_names):
                return None
            if any(self.index.provides(candidate, need) for candidate in self._image.get(need.name, ())):
                return None
        for need in group:
            for candidate in self._by_name.get(need.name, ()):
                if self.index.provides(candidate, need):
                    return candidate
        for need in group:
            candidate = next(self.index.answering(need), None)
            if candidate:
                return candidate
        if self.index.strict:
            alternatives = " | ".join(str(need) for need in group)
            raise ClosureError(
                f"{package.name} {package.version} needs {alternatives}, which no repository has"
            )
        return None


def _register(table: dict[str, list[Package]], package: Package) -> None:
    for name in dict.fromkeys((package.name, *(name for name, _ in package.provides))):
        table[name].append(package)
